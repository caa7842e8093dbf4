#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# same_run.sh SIMULATE SIMULATE [SEEDS]: both programs, built by different compilers, must make the
# same run of each of the first seeds. A difference is undefined or unspecified behaviour (an order
# of evaluation, a hash order, an uninitialised value) in the engine or in the simulator.
set -euo pipefail

usage="usage: same_run.sh SIMULATE SIMULATE [SEEDS]"
first=${1:?$usage}
second=${2:?$usage}
seeds=${3:-40}

for program in "$first" "$second"; do
  if [ ! -x "$program" ]; then
    echo "SKIPPED: there is no $program"
    exit 0
  fi
done

mine=$("$first" --hashes "$seeds")
theirs=$("$second" --hashes "$seeds")
if [ "$(printf '%s\n' "$mine" | wc -l)" -ne "$seeds" ]; then
  echo "$first did not print $seeds hashes"
  exit 1
fi
if ! diff <(printf '%s\n' "$mine") <(printf '%s\n' "$theirs"); then
  echo "seeds differ between $first and $second; compare their steps with --seed"
  exit 1
fi
echo "$seeds seeds make the same runs"
