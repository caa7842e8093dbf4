#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [-DNAME=VALUE...]: checks token.pml with spin. The protocol must show no error in its
# whole state space (two clients, one attempt each, unless told otherwise); without one of its rules
# it must show one.
set -euo pipefail
if ! command -v spin >/dev/null; then
  echo "SKIPPED: spin is not installed (Debian: apt-get install spin)"
  exit 0
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
