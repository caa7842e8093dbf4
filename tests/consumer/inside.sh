#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# inside.sh PROJECT BUILD COMMANDS: configures a project that has redlock inside, added by the CMake
# COMMANDS in silence, and compiles the program in it; the library itself is not built again.
set -euo pipefail
mkdir -p "$2"
echo "$3" >"$2/added_by.cmake"
said=$(cmake --fresh -S "$1" -B "$2" -DREDLOCK_ADDED_BY="$2/added_by.cmake" 2>&1) || {
  echo "$said"
  exit 1
}
echo "$said"
if [ "$(grep -A 1 'adding redlock' <<<"$said" | tail -n 1)" != "-- added redlock" ]; then
  echo "redlock is not silent inside another project"
  exit 1
fi
cmake --build "$2" --target consumer
