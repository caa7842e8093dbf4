#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# readme_install.sh SOURCE WORK VERSION SHARED LIBDIR: runs the README's section "Install" as it
# stands there, in a clone that has a tag for VERSION: its commands, one after the other, where only
# the library's own dependencies can be found; then a project for each of its CMake blocks. What
# would be written to the system is staged (DESTDIR), and the URL in the README leads to the clone.
# The toolchain file asks for the shared library, which is built here and nowhere else: it is
# installed anew in SHARED and in SHARED/LIBDIR, which CMake is told with the prefix in it. Of the
# second block's project, which has redlock inside, only the program is compiled.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
source=$1
work=$2
shared=$4
rm -rf "$work"
mkdir -p "$work/clone"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
# Warnings are errors if the outer build says so; here they are those of a Release build.
if [ "${REDLOCK_WERROR:-}" = ON ]; then export CXXFLAGS="${CXXFLAGS:-} -Werror"; fi

# The tree as it is, with what is not committed yet.
git -c safe.directory='*' -C "$source" ls-files -z --cached --others --exclude-standard |
  while IFS= read -r -d '' file; do
    if [ -e "$source/$file" ]; then printf '%s\0' "$file"; fi
  done | (cd "$source" && xargs -0 cp --parents -t "$work/clone")
git -C "$work/clone" init -q
git -C "$work/clone" add -A
git -C "$work/clone" -c user.name=test -c user.email=test@localhost commit -q -m "what is tested"
git -C "$work/clone" tag "v$3"

# block LANGUAGE N: the N-th block in this language.
section=$(awk '/^## / { inside = $0 == "## Install" } inside' "$source/README.md")
block() {
  awk -v start="\`\`\`$1" -v wanted="$2" \
    '/^```/ { inside = !inside && $0 == start && ++n == wanted; next } inside' <<<"$section"
}

echo "== the commands"
cd "$work/clone"
cp "$here/consumer.cpp" program.cpp
export DESTDIR=$work/stage CMAKE_TOOLCHAIN_FILE=$here/nothing_else.cmake
libraries=$DESTDIR/usr/local/$5
export PKG_CONFIG_PATH=$libraries/pkgconfig
bash -euxo pipefail -c "$(block sh 1)"
LD_LIBRARY_PATH=$libraries ./a.out
if [ -e build/bin ] || [ -e build/tests ] || [ -e build/cluster ]; then
  echo "more than the library was built"
  exit 1
fi
unset DESTDIR CMAKE_TOOLCHAIN_FILE PKG_CONFIG_PATH

url=$(sed -nE 's/.*GIT_REPOSITORY ([^ )]+).*/\1/p' <<<"$section")
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$work/clone.insteadOf GIT_CONFIG_VALUE_0=$url
if [ -z "$(block cmake 2)" ] || [ -n "$(block cmake 3)" ]; then
  echo "the README does not show find_package and FetchContent, and these alone"
  exit 1
fi

echo "== CMake, installed"
project=$work/installed
mkdir "$project"
cp "$here/consumer.cpp" "$project/program.cpp"
cat >"$project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES CXX)
add_executable(program program.cpp)
$(block cmake 1)
target_link_libraries(program PRIVATE redlock::redlock)
END
cmake -S "$project" -B "$project/build" -DCMAKE_PREFIX_PATH="$work/stage/usr/local"
cmake --build "$project/build"
"$project/build/program"

echo "== CMake, fetched"
"$here/inside.sh" "$here/add_subdirectory" "$work/fetched" "$(block cmake 2)"

echo "== elsewhere"
cd "$work/clone"
cmake -S . -B build -DCMAKE_INSTALL_PREFIX="$shared" -DCMAKE_INSTALL_LIBDIR="$shared/$5"
cmake --build build
if find build -name '*.o' -newer a.out | grep .; then
  echo "these are compiled again for another place"
  exit 1
fi
rm -rf "$shared"
cmake --install build
