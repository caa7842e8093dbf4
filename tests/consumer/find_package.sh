#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# find_package.sh PROJECT BUILD PREFIX: builds and runs a project that finds redlock in PREFIX.
set -euo pipefail
cmake --fresh -S "$1" -B "$2" -DCMAKE_PREFIX_PATH="$3"
grep "^redlock_DIR:PATH=$3/" "$2/CMakeCache.txt"
cmake --build "$2"
"$2/consumer"
