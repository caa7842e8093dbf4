#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Writes what documents say of recorded figures, between lines such as <!-- peers: table --> and
# <!-- end -->, from docs/peers.tsv. With --check it changes nothing, and fails where they differ.
set -euo pipefail
export LC_ALL=C
record=${2:-$(dirname "$(readlink -f "$0")")/peers.tsv}

# part NAME: the lines between two marks.
part() {
  awk -F '\t' -v part="$1" '
  # What others wrote, for a page: a peer names itself and says what is wrong.
  function plain(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
  function is_number(text) { return text ~ /^-?[0-9.]+$/ }
  function get(peer, column) { return (peer SUBSEP column) in cell ? cell[peer, column] : "" }
  function shown(peer, column, value, floor) {
    value = get(peer, column); floor = get("bare hiredis", column)
    if (value == "") return "-"
    if (!is_number(value)) return "**" value "**"
    if (column == "acquire" || column == "release")
      if (floor > 0) return value sprintf(" (%.2f)", value / floor)
    return value
  }
  # The median, the longest, and what came after it.
  function with_longest(peer, column, longest, then) {
    longest = get(peer, column "_longest")
    then = get(peer, column "_then")
    return shown(peer, column) (longest == "" ? "" : " (" longest ")") \
      (then == "" ? "" : ", then **" then "**")
  }
  $1 == "peer" { name[++peers] = $2; on[$2] = $3; version[$2] = plain($4) }
  $1 == "cell" { cell[$2, $3] = $4 }
  $1 == "note" { note[++notes] = $2 ": " plain($3) }
  $1 == "skipped" { skipped[++left_out] = $2 ": " plain($3) }
  $1 == "server" && $2 != "" { servers = servers (servers == "" ? "" : ", ") $2 }
  $1 ~ /^(machine|commit|date|load|rounds)$/ { about[$1] = $2 }
  END {
    if (part == "table") {
      print "| | acquire µs (floor = 1) | release µs (floor = 1) | cycles/s, 1 caller |" \
        " cycles/s, 64 callers | two nodes stopped: acquire ms (longest) |" \
        " two killed: acquire ms (longest) | three stopped: one call | 10 ms a node: acquire ms |" \
        " 32 callers, one name: grants/s of 200 | p99 of waits, ms | grants a caller |" \
        " holder killed: ms after its lease (longest) |"
      print "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
      for (i = 1; i <= peers; ++i) {
        p = name[i]
        spread = get(p, "most") == "" ? "-" : get(p, "fewest") " to " get(p, "most")
        print "| " (p ~ /^redlock/ ? "**" p "**" : p) (on[p] == "one-node" ? " (one node)" : "") \
          " | " shown(p, "acquire") " | " shown(p, "release") " | " shown(p, "cycles") \
          " | " shown(p, "crowd") " | " with_longest(p, "stopped") \
          " | " with_longest(p, "killed") " | " (get(p, "none") == "" ? "-" : get(p, "none")) \
          " | " shown(p, "slow") " | " shown(p, "contended") " | " shown(p, "waited") \
          " | " spread " | " with_longest(p, "expiry") " |"
      }
    }
    if (part == "notes") {
      for (i = 1; i <= notes; ++i) print "- " note[i]
      for (i = 1; i <= left_out; ++i) print "- left out: " skipped[i]
    }
    if (part == "versions") {
      print about["machine"] "; " servers "; commit " about["commit"] ", " about["date"] \
        "; " about["rounds"] " rounds; load average at the end " about["load"] ".\n"
      for (i = 1; i <= peers; ++i) print "- " name[i] ": " version[name[i]]
    }
    if (part == "summary") {
      p = "redlock, blocking"; f = "bare hiredis"; c = "redlock, callback"
      print "In absolute figures, as `./dev peers` printed them (" about["machine"] \
        ", five nodes on loopback, commit " about["commit"] "):" \
        " acquire " get(p, "acquire") " µs, release " \
        get(p, "release") " µs (hiredis alone: " get(f, "acquire") " and " get(f, "release") ");" \
        " one caller " get(p, "cycles") " cycles/s, 64 callers " get(p, "crowd") ", by callbacks " \
        get(c, "crowd") "."
    }
  }' "$record"
}

# rewritten FILE: as it should be.
rewritten() {
  local line inside=
  while IFS= read -r line || [ -n "$line" ]; do
    if [ "$line" = '<!-- end -->' ]; then inside=; fi
    if [ -z "$inside" ]; then printf '%s\n' "$line"; fi
    if [[ $line =~ ^'<!-- peers: '([a-z]+)' -->'$ ]]; then
      inside=yes
      part "${BASH_REMATCH[1]}"
    fi
  done <"$1"
}

if [ "${1:-}" = --print ]; then
  for name in table notes versions; do part "$name" && echo; done
  exit
fi
cd "$(dirname "$(readlink -f "$0")")"
for file in performance.md ../README.md; do
  new=$(rewritten "$file")
  if [ "${1:-}" = --check ]; then
    diff "$file" - <<<"$new" || {
      echo "docs/$file differs from docs/peers.tsv: run docs/write_tables.sh" >&2
      exit 1
    }
  else
    printf '%s\n' "$new" >"$file"
  fi
done
