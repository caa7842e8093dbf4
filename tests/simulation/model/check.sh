#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [--for MINUTESm] [-DNAME=VALUE...]: checks token.pml with spin. The protocol must show no
# error in its whole state space (two clients, one attempt each, unless told otherwise); without one
# of its rules it must show one. With --for, two attempts each are then looked at for that long, too
# many states to keep: a bit stands for each, so a few may be missed.
set -euo pipefail
if ! command -v spin >/dev/null; then
  echo "SKIPPED: spin is not installed (Debian: apt-get install spin)"
  exit 0
fi
minutes=0
if [ "${1:-}" = --for ]; then
  if ! [[ "${2:-}" =~ ^([1-9][0-9]*)m$ ]]; then
    echo "check.sh: say for how many minutes, for example --for 10m" >&2
    exit 64
  fi
  minutes=${BASH_REMATCH[1]}
  shift 2
fi
model=$(dirname "$(readlink -f "$0")")/token.pml
bounds=("-DATTEMPTS=1" "$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# explore OPTION...: the verifier's report.
explore() {
  spin -a "$@" "$model" >/dev/null
  cc -O2 -w -DSAFETY -DCOLLAPSE -o pan pan.c
  # -E: clients that wait for ever are no error.
  ./pan -E -n -m1000000
}

report=$(explore "${bounds[@]}")
states=$(grep -o '[0-9]* states, stored' <<<"$report")
if ! grep -q 'errors: 0' <<<"$report" ||
  grep -qE 'max search depth too small|out of memory|Search not completed' <<<"$report"; then
  printf '%s\n' "$report" "the protocol: an error, or not all of it was looked at"
  exit 1
fi
echo "the protocol: no error, $states"

for missing in NO_SETTLING HELD_SETTLES NO_OWNER_CHECK; do
  report=$(explore "${bounds[@]}" "-D$missing")
  if ! grep -q 'assertion violated' <<<"$report"; then
    printf '%s\n' "$report" "$missing: no counterexample, so the model shows nothing"
    exit 1
  fi
  echo "$missing: counterexample after $(grep -o '[0-9]* states, stored' <<<"$report")"
done

[ "$minutes" -gt 0 ] || exit 0
spin -a -DATTEMPTS=2 "$@" "$model" >/dev/null
cc -O2 -w -DSAFETY -DBITSTATE -o pan pan.c
report=$(./pan -E -n -m1000000 -w33 "-Q$minutes")
if ! grep -q 'errors: 0' <<<"$report"; then
  printf '%s\n' "$report" "two attempts each: an error"
  exit 1
fi
whole="all of them (but for what shared bits hide)"
if grep -q 'Search not completed' <<<"$report"; then whole="not all of them, the time was over"; fi
echo "two attempts each: no error, $(grep -o '[0-9]* states, stored' <<<"$report"), $whole"
