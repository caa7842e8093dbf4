#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh SOURCE BUILD PREFIX LIBDIR SHARED: builds redlock with nothing asked for, as on a
# machine that has the library's own dependencies alone, and installs it in PREFIX and in
# PREFIX/LIBDIR, which CMake is told with the prefix in it. Only the library is built.
set -euo pipefail
absent=()
for package in CLI11 fmt nlohmann_json doctest benchmark; do
  absent+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
done
cmake --fresh -S "$1" -B "$2" -DCMAKE_INSTALL_PREFIX="$3" -DCMAKE_INSTALL_LIBDIR="$3/$4" \
  -DBUILD_SHARED_LIBS="$5" "${absent[@]}" -DCMAKE_UNITY_BUILD=ON
cmake --build "$2"
if [ -e "$2/bin" ] || [ -e "$2/tests" ] || [ -e "$2/cluster" ]; then
  echo "more than the library was built"
  exit 1
fi
cmake --install "$2"
