#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh PACKAGES: installs the packages of this directory, uses them and removes them, in a tree
# of Debian that has nothing else (./dev package --check makes one). First the command alone, where
# nothing but its Depends is there; then libredlock-dev and a compiler, for a program of one's own.
set -euo pipefail
packages=$(realpath "$1")  # apt takes a path for one by its slash
log=$(mktemp)
tests=$(realpath "$(dirname "$0")/../../tests/consumer")

quietly() {
  if ! DEBIAN_FRONTEND=noninteractive "$@" >"$log" 2>&1; then
    printf '%s failed:\n%s\n' "$*" "$(tail -n 20 "$log")"
    exit 1
  fi
}
install() { quietly apt-get install -qy --no-install-recommends "$@"; }
# What stands on the disk, without the records of apt and dpkg and what programs keep in caches.
files() {
  find / -xdev \( -path /tmp -o -path /proc -o -path /dev -o -path /redlock-build \
    -o -path /var/cache -o -path /var/lib/apt -o -path /var/log -o -path '/var/lib/dpkg/*-old' \
    -o -path /redlock \) -prune -o -print | sort
}
# nothing_left BEFORE: of what was installed since then.
nothing_left() {
  local names
  mapfile -t names < <(dpkg-query -W -f '${Package}\n' '*redlock*')
  quietly apt-get purge -qy "${names[@]}"
  quietly apt-get autoremove -qy --purge
  if ! diff <(echo "$1") <(files); then
    echo "this is what an installation and its removal left behind"
    exit 1
  fi
  if dpkg -l | grep redlock; then exit 1; fi
}

quietly apt-get update -q
before=$(files)
echo "== the command, installed alone"
install "$packages"/libredlock[0-9]*.deb "$packages"/redlock_*.deb
dpkg-query -W -f '${Package} ${Version}: ${Depends}\n' redlock 'libredlock*'
redlock --version
status=0
redlock status none --nodes 127.0.0.1:1 || status=$?
if [ "$status" != 69 ]; then
  echo "without nodes it should exit with 69, and did with $status"
  exit 1
fi
status=0
redlock fleet list || status=$?
if [ "$status" != 127 ]; then
  echo "without redlock-tools, redlock fleet should exit with 127, and did with $status"
  exit 1
fi
for file in share/man/man1/redlock.1.gz share/man/man1/redlock-exec.1.gz \
  share/bash-completion/completions/redlock share/fish/vendor_completions.d/redlock.fish \
  share/zsh/vendor-completions/_redlock share/doc/redlock/copyright; do
  ls "/usr/$file"
done
install "$packages"/redlock-tools_*.deb
redlock fleet list
redlock bench --help | sed -n 1,3p
ls /usr/share/man/man1/redlock-bench.1.gz /usr/share/man/man1/redlock-fleet-up.1.gz
nothing_left "$before"
echo "removed; nothing is left"

install g++ pkg-config cmake make
before=$(files)
echo "== a program of one's own"
install "$packages"/libredlock*.deb
"$tests/pkg_config.sh" "$tests/consumer.cpp" /tmp/program /usr/lib
ldd /tmp/program | grep libredlock
"$tests/find_package.sh" "$tests/find_package" /tmp/build /usr
# What a program's own package would depend on.
cat "/var/lib/dpkg/info/$(dpkg-query -W -f '${Package}' 'libredlock[0-9]*'):"*.shlibs 2>/dev/null ||
  cat /var/lib/dpkg/info/libredlock[0-9]*.shlibs
nothing_left "$before"
echo "removed; nothing is left"
