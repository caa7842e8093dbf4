#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# packages.sh BUILD WORK: makes Debian packages of BUILD, which has the static library and the
# command, and installs them into an empty tree. They have every file of an installation once, a
# program is linked with what is there, and nothing is left after their removal. (./dev package
# --check does so with the shared library, in a whole Debian.)
set -euo pipefail
build=$1 work=$2
here=$(dirname "$0")
# dpkg looks for ldconfig, which is not in the PATH of every user.
PATH=$PATH:/usr/sbin:/sbin
for tool in dpkg dpkg-shlibdeps file; do
  if ! command -v $tool >/dev/null; then
    echo "SKIPPED: there is no $tool"
    exit
  fi
done
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v fakeroot >/dev/null; then
    echo "SKIPPED: this is not root, and there is no fakeroot"
    exit
  fi
  as_root=(fakeroot)
fi
rm -rf "$work"
tree=$work/tree
mkdir -p "$tree"/var/lib/dpkg/{info,updates}
touch "$tree/var/lib/dpkg/status"
cpack --config "$build/CPackConfig.cmake" -B "$work/packages" -D CPACK_STRIP_FILES=OFF \
  -D CPACK_DEBIAN_COMPRESSION_TYPE=none
# Some images of Debian tell dpkg to leave out manual pages and documentation.
in_tree() {
  "${as_root[@]}" dpkg --root="$tree" --force-depends --force-unsafe-io --path-include='*' \
    --log=/dev/null "$@"
}
files() { (cd "$1" && find . \( -type f -o -type l \) -not -path './share/doc/*'); }

in_tree --install "$work"/packages/*.deb
# An installation of its own: in one made earlier may be files that are not installed any more.
cmake --install "$build" --prefix "$work/installed" >/dev/null
as_in_debian=(-e 's/(man1.*)/\1.gz/' -e 's/site-functions/vendor-completions/')
if ! diff <(files "$work/installed" | sed -E "${as_in_debian[@]}" | sort) \
  <(files "$tree/usr" | sort); then
  echo "the packages (>) have other files than the installation (<)"
  exit 1
fi
for package in "$work"/packages/*.deb; do
  name=$(dpkg-deb -f "$package" Package)
  dpkg-deb -f "$package" Package Version Depends Section Description
  ls "$tree/usr/share/doc/$name/"{copyright,changelog.gz,changelog.Debian.gz}
done
gzip -dc "$tree/usr/share/man/man1/redlock.1.gz" | grep '^\.TH'
"$tree/usr/bin/redlock" --version
libraries=$(find "$tree/usr" -name pkgconfig -printf '%h')
"$here/pkg_config.sh" "$here/consumer.cpp" "$work/program" "$libraries"

mapfile -t names < <(in_tree --get-selections | cut -f 1)
in_tree --purge "${names[@]}"
if find "$tree" -mindepth 1 -not -path "$tree/var*" | grep .; then
  echo "the removal left these behind"
  exit 1
fi
rm -rf "$work"
echo "installed and removed: ${names[*]}"
