#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# standards.sh SOURCE WORK LIBDIR: a standard older than C++20 ends in one sentence, from CMake and
# from every public header of the redlock installed in LIBDIR; a newer one is used if asked for.
set -euo pipefail
here=$(dirname "$0")
export PKG_CONFIG_PATH=$3/pkgconfig
rm -rf "$2"
mkdir -p "$2"

# one_error SENTENCE OUTPUT: of the errors in OUTPUT, there is one, and it says SENTENCE.
one_error() {
  local errors
  errors=$(grep -iE '(^|[^[:alnum:]])error( |:)' <<<"$2" || true)
  if [ "$(wc -l <<<"$errors")" != 1 ] || ! tr -s ' \n' ' ' <<<"$2" | grep -qF "$1"; then
    printf 'not one error that says "%s", but:\n%s\n' "$1" "$2"
    exit 1
  fi
}

for standard in 11 17; do
  if said=$(cmake -S "$1" -B "$2/cmake$standard" -DCMAKE_CXX_STANDARD=$standard 2>&1); then
    echo "CMake accepts C++$standard"
    exit 1
  fi
  one_error "redlock needs C++20 or newer, and CMAKE_CXX_STANDARD is $standard" "$said"
done

cmake -S "$1" -B "$2/cmake23" -DCMAKE_CXX_STANDARD=23 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
if grep '"command"' "$2/cmake23/compile_commands.json" | grep -vE -e '-std=c\+\+2(3|b) '; then
  echo "these are not compiled as C++23, which was asked for"
  exit 1
fi

# Every header alone, and a program that uses the library: it is not to complain about names either.
flags=()
eval "flags=($(pkg-config --cflags redlock))"
include=$(pkg-config --variable=includedir redlock)
compilers=("${CXX:=c++}")
for other in g++ clang++; do
  if [ "$other" != "${CXX##*/}" ] && command -v "$other" >/dev/null; then compilers+=("$other"); fi
done
programs=("$here/consumer.cpp")
for header in "$include"/redlock/*.hpp; do
  name=${header##*/}
  if [ "$name" = export.hpp ]; then continue; fi
  echo "#include <redlock/$name>" >"$2/$name.cpp"
  programs+=("$2/$name.cpp")
done
for compiler in "${compilers[@]}"; do
  for program in "${programs[@]}"; do
    if said=$("$compiler" -std=c++17 -fsyntax-only "$program" "${flags[@]}" 2>&1); then
      echo "$compiler accepts $program as C++17"
      exit 1
    fi
    one_error "redlock needs C++20 or newer: compile with -std=c++20" \
      "$(grep -vE '^[0-9]+ errors? generated' <<<"$said")"
  done
  echo "$compiler: ${#programs[@]} programs"
done
