#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws how costs grow, for docs/performance.md, from the recorded figures: docs/draw_scale.sh
# >docs/scale.svg. A repository test compares the two.
set -euo pipefail
export LC_ALL=C

awk -F '\t' -v wide=300 -v high=190 -v across=3 '
function panel(curve, figure, title, below) {
  ++panels
  curves[panels] = curve; figures[panels] = figure; titles[panels] = title; unders[panels] = below
}
function log10(x) { return log(x) / log(10) }
function floor10(x, power) {
  power = int(log10(x) + 1e-9)
  return 10 ^ (log10(x) < power - 1e-9 ? power - 1 : power)
}
function short(x) {
  if (x >= 1000000) return x / 1000000 "M"
  return x >= 1000 ? sprintf("%.3g", x / 1000) "k" : sprintf("%.3g", x)
}
function text(x, y, class, what) {
  printf "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, what
}
function column(x, even) {
  if (even) return x1 + (x - low_x) / (high_x == low_x ? 1 : high_x - low_x) * (x2 - x1)
  return x1 + log10(x / low_x) / (high_x == low_x ? 1 : log10(high_x / low_x)) * (x2 - x1)
}
function height_of(y) { return y2 - log10(y / low_y) / log10(high_y / low_y) * (y2 - y1) }
function draw(key, class, even, n, xs, i, points) {
  n = split(order[key], xs, " ")
  for (i = 1; i <= n; ++i) {
    points = points sprintf("%s%d %d", i == 1 ? "M" : " L", column(xs[i], even), \
      height_of(value[key, xs[i]]))
  }
  printf "<path class=\"%s\" d=\"%s\"/>\n", class, points
  for (i = 1; i <= n; ++i) {
    printf "<circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"3\"/>\n", class, column(xs[i], even), \
      height_of(value[key, xs[i]])
  }
  text(column(xs[n], even), height_of(value[key, xs[n]]) + (class == "ours" ? -8 : 16), \
    "end " class, short(value[key, xs[n]]))
}
function bounds(key, n, xs, i, v) {
  n = split(order[key], xs, " ")
  for (i = 1; i <= n; ++i) {
    v = value[key, xs[i]]
    if (low_x == "" || xs[i] + 0 < low_x) low_x = xs[i] + 0
    if (high_x == "" || xs[i] + 0 > high_x) high_x = xs[i] + 0
    if (low_y == "" || v < low_y) low_y = v
    if (high_y == "" || v > high_y) high_y = v
  }
  return n
}
BEGIN {
  panel("nodes", "acquire_us", "acquire, µs (grey: hiredis alone)", "nodes, one caller")
  panel("nodes", "cycles", "cycles/s", "nodes, 64 in flight")
  panel("in_flight", "cycles", "cycles/s", "in flight, a name each")
  panel("in_flight", "acquire_us", "acquire, µs (median)", "in flight, a name each")
  panel("names", "cycles", "cycles/s", "names of 64 in flight")
  panel("waiters", "hand_offs", "hand-offs/s", "callers of one name")
  panel("leases", "cpu_percent", "renewals, % of a core", "leases of 30 s")
  panel("leases", "bytes", "memory, bytes a lease", "leases")
}
NF == 4 && $4 > 0 {
  key = $1 " " $2
  value[$1 "/" $3, $2] = $4
  order[$1 "/" $3] = order[$1 "/" $3] " " $2
}
END {
  rows = int((panels + across - 1) / across)
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", \
    across * wide, rows * high
  printf "width=\"%d\" role=\"img\"\n", across * wide
  print " aria-label=\"How costs grow with nodes, calls in flight, names, waiters and leases\">"
  print "<style>"
  print ".paper { fill: #ffffff } .grid { stroke: #d0d7de } path { fill: none }"
  print "path.ours { stroke: #0969da; stroke-width: 2 } circle.ours { fill: #0969da }"
  print "path.floor { stroke: #8c959f } circle.floor { fill: #8c959f }"
  print "text { font: 12px sans-serif; fill: #24292f } .axis { fill: #57606a; font-size: 10px }"
  print ".title { font-weight: bold } .middle, .end { text-anchor: middle } .right"
  print "{ text-anchor: end } .end { font-size: 11px }"
  print "@media (prefers-color-scheme: dark) {"
  print ".paper { fill: #0d1117 } .grid { stroke: #30363d } path.ours { stroke: #58a6ff }"
  print "circle.ours { fill: #58a6ff } text { fill: #e6edf3 } .axis { fill: #8b949e }"
  print "}\n</style>"
  printf "<rect class=\"paper\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", across * wide, rows * high
  for (p = 1; p <= panels; ++p) {
    left = (p - 1) % across * wide; top = int((p - 1) / across) * high
    x1 = left + 52; x2 = left + wide - 28; y1 = top + 44; y2 = top + high - 40
    key = curves[p] "/" figures[p]
    low_x = high_x = low_y = high_y = ""
    if (bounds(key) == 0) continue
    with_floor = figures[p] == "acquire_us" && curves[p] == "nodes"
    if (with_floor) bounds("nodes/floor_us")
    even = curves[p] == "nodes"
    low_y = floor10(low_y)
    top_y = floor10(high_y)
    high_y = top_y < high_y ? top_y * 10 : top_y
    if (high_y == low_y) high_y = low_y * 10
    text(left + 14, top + 22, "title", titles[p])
    for (y = low_y; y <= high_y * 1.001; y *= 10) {
      printf "<path class=\"grid\" d=\"M%d %d H%d\"/>\n", x1, height_of(y), x2
      text(x1 - 6, height_of(y) + 4, "axis right", short(y))
    }
    if (even) {
      for (x = low_x; x <= high_x; ++x) text(column(x, even), y2 + 14, "axis middle", x)
    } else {
      for (x = floor10(low_x); x <= high_x * 1.001; x *= 10) {
        if (x >= low_x) text(column(x, even), y2 + 14, "axis middle", short(x))
      }
    }
    text((x1 + x2) / 2, y2 + 29, "axis middle", unders[p])
    if (with_floor) draw("nodes/floor_us", "floor", even)
    draw(key, "ours", even)
  }
  print "</svg>"
}' "${1:-$(dirname "$0")/scale.tsv}"
