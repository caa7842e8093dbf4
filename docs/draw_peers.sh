#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the plot of docs/performance.md from the recorded figures: docs/draw_peers.sh
# >docs/peers.svg. A repository test compares the two.
set -euo pipefail
export LC_ALL=C

awk -F '\t' -v left=150 -v wide=205 -v row=22 -v top=64 '
function panel(column, title, low, decades) {
  ++panels
  columns[panels] = column; titles[panels] = title; lows[panels] = low; spans[panels] = decades
}
function text(x, y, class, what) {
  gsub(/&/, "\\&amp;", what); gsub(/</, "\\&lt;", what)
  printf "<text%s x=\"%d\" y=\"%d\">%s</text>\n", class ? " class=\"" class "\"" : "", x, y, what
}
function log10(x) { return log(x) / log(10) }
function short(x) { return x >= 10000 ? int(x / 1000 + 0.5) "k" : x }
BEGIN {
  panel("acquire", "acquire, µs", 10, 4)
  panel("crowd", "64 callers, cycles/s", 100, 3)
  panel("stopped", "two stopped: acquire, ms", 0.01, 6)
  panel("waited", "32 on one name: p99, ms", 10, 3)
}
$1 == "peer" { name[++peers] = $2 }
$1 == "cell" { cell[$2, $3] = $4 }
END {
  width = left + panels * wide + 10; height = top + peers * row + 34
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", width, height
  printf "width=\"%d\" role=\"img\"\n", width
  print " aria-label=\"What a lock costs with redlock and others: alone, in a crowd, with faults\">"
  print "<style>"
  print ".paper { fill: #ffffff } .grid { stroke: #d0d7de } .line { stroke: #8c959f }"
  print ".dot { fill: #57606a } .ours { fill: #0969da; stroke: #0969da }"
  print "text { font: 12px sans-serif; fill: #24292f } .axis { fill: #57606a; font-size: 10px }"
  print ".middle { text-anchor: middle } .title { font-weight: bold; text-anchor: middle }"
  print ".own { font-weight: bold } .bad { fill: #b3261e; font-weight: bold }"
  print "@media (prefers-color-scheme: dark) {"
  print ".paper { fill: #0d1117 } .grid { stroke: #30363d } .line { stroke: #6e7681 }"
  print ".dot { fill: #8b949e } .ours { fill: #58a6ff; stroke: #58a6ff }"
  print "text { fill: #e6edf3 } .axis { fill: #8b949e } .bad { fill: #ff7b72 }"
  print "}\n</style>"
  printf "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", width, height
  for (p = 1; p <= panels; ++p) {
    x = left + (p - 1) * wide
    text(x + (wide - 20) / 2, 26, "title", titles[p])
    for (d = 0; d <= spans[p]; ++d) {
      at = x + d * (wide - 50) / spans[p]
      printf "<path class=\"grid\" d=\"M%d %d V%d\"/>\n", at, top - 14, top + peers * row
      text(at, top - 20, "axis middle", short(lows[p] * 10 ^ d))
    }
  }
  for (i = 1; i <= peers; ++i) {
    y = top + (i - 1) * row + 8
    own = name[i] ~ /^redlock/
    text(10, y + 4, own ? "own" : "", name[i])
    for (p = 1; p <= panels; ++p) {
      x = left + (p - 1) * wide
      value = cell[name[i], columns[p]]
      if (value == "") continue
      if (value !~ /^[0-9.]+$/) { text(x + 6, y + 4, "bad", value); continue }
      part = log10(value / lows[p]) / spans[p]
      end = x + (part < 0 ? 0 : part > 1 ? 1 : part) * (wide - 50)
      printf "<path class=\"%s\" d=\"M%d %d H%d\"/>\n", own ? "ours" : "line", x, y, end
      printf "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"4\"/>\n", own ? "ours" : "dot", end, y
      text(end + 7, y + 4, own ? "own" : "", value)
    }
  }
  text(10, height - 10, "axis", "Logarithmic. Left is better for times, right for cycles/s.")
  print "</svg>"
}' "$(dirname "$0")/peers.tsv"
