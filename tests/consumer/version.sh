#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# version.sh SOURCE WORK PREFIX LIBDIR VERSION: the version of CMake's project is that of the
# package, of redlock.pc, of the header, of the command if it is there, of the port for vcpkg, and
# the newest released one in CHANGELOG.md. (Conan's recipe reads that of CMake's project.)
set -euo pipefail
version=$5
work=$2
rm -rf "$work"
mkdir -p "$work"
export PKG_CONFIG_PATH=$4/pkgconfig

# same WHERE FOUND: FOUND is the version.
same() {
  echo "$1: $2"
  if [ "$2" != "$version" ]; then
    echo "this should be $version"
    exit 1
  fi
}

same redlock.pc "$(pkg-config --modversion redlock)"

cat >"$work/version.cpp" <<'END'
#include <cstdio>
#include <redlock/redlock.hpp>
int main() {
  std::printf("%s\n%d.%d.%d\n", REDLOCK_VERSION, REDLOCK_VERSION_MAJOR, REDLOCK_VERSION_MINOR,
              REDLOCK_VERSION_PATCH);
}
END
flags=()
eval "flags=($(pkg-config --cflags redlock))"
"${CXX:-c++}" -std=c++20 "$work/version.cpp" -o "$work/version" "${flags[@]}"
for found in $("$work/version"); do same version.hpp "$found"; done

if [ -x "$3/bin/redlock" ]; then
  same "redlock --version" "$("$3/bin/redlock" --version | sed 's/^redlock //')"
fi
same vcpkg.json "$(sed -nE 's/^  "version": "(.*)",$/\1/p' "$1/packaging/vcpkg/redlock/vcpkg.json")"
same CHANGELOG.md "$(sed -nE 's/^## ([0-9][^ ]*) - [0-9]{4}-[0-9]{2}-[0-9]{2}$/\1/p' \
  "$1/CHANGELOG.md" | head -n 1)"

# Until 1.0 another minor version is another API, and find_package is to refuse it.
IFS=. read -r major minor patch <<<"$version"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(versions LANGUAGES CXX)
foreach(wanted $((major + 1)).0 $major.$((minor + 1)) $major.$minor.$((patch + 1)))
  find_package(redlock \${wanted} QUIET)
  if(redlock_FOUND)
    message(FATAL_ERROR "redlock \${redlock_VERSION} was taken for \${wanted}")
  endif()
endforeach()
find_package(redlock $major.$minor REQUIRED)
message(STATUS "redlock \${redlock_VERSION}")
END
same redlock-config-version.cmake "$(cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$3" |
  sed -n 's/^-- redlock //p')"
