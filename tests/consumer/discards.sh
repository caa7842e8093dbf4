#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# discards.sh PROGRAM INCLUDE...: a result that a program needs cannot be thrown away without the
# compiler saying so; one that it may do without can. The lines that the compiler warns of must be
# those that PROGRAM marks. (Warnings, because clang stops after twenty errors.)
set -euo pipefail
program=$1
shift
messages=$("${CXX:-c++}" -std=c++20 -fsyntax-only -Wall -Wextra "${@/#/-I}" "$program" 2>&1) || {
  echo "$messages"
  exit 1
}
warnings=$(grep -E 'warning:' <<<"$messages" || true)
told=$(grep -F Wunused-result <<<"$warnings" | sed -E 's/.*discards\.cpp:([0-9]+):.*/\1/' |
  sort -nu || true)
marked=$(grep -n '// lost$' "$program" | cut -d : -f 1)
strange=$(grep -vF Wunused-result <<<"$warnings" || true)
if [ "$told" != "$marked" ] || [ -n "$strange" ]; then
  echo "lines that throw a result away silently (<), or are warned of though nothing is lost (>):"
  diff <(echo "$marked") <(echo "$told") || true
  echo "$strange"
  exit 1
fi
echo "$(wc -l <<<"$marked") results cannot be thrown away silently"
