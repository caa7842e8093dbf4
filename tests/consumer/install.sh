#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# install.sh SOURCE BUILD PREFIX SHARED: builds the library alone and installs it in PREFIX.
set -euo pipefail
cmake -S "$1" -B "$2" -DBUILD_SHARED_LIBS="$4" -DREDLOCK_BUILD_CLI=OFF -DREDLOCK_BUILD_TESTS=OFF \
  -DREDLOCK_BUILD_BENCH=OFF -DREDLOCK_BUILD_EXAMPLES=OFF -DCMAKE_UNITY_BUILD=ON
cmake --build "$2"
cmake --install "$2" --prefix "$3"
