#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# add_subdirectory.sh PROJECT BUILD SOURCE: builds and runs a project that contains redlock.
# Precompiled headers, off by default inside another project, only save time here.
set -euo pipefail
said=$(cmake --fresh -S "$1" -B "$2" -DREDLOCK_SOURCE_DIR="$3" -DCMAKE_UNITY_BUILD=ON 2>&1) || {
  echo "$said"
  exit 1
}
echo "$said"
if [ "$(grep -A 1 'adding redlock' <<<"$said" | tail -n 1)" != "-- added redlock" ]; then
  echo "redlock is not silent inside another project"
  exit 1
fi
cmake --build "$2"
"$2/consumer"
