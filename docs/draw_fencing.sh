#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the diagram of docs/fencing.md: docs/draw_fencing.sh >docs/fencing.svg. A repository test
# compares the two.
set -euo pipefail

width=760
height=548
declare -A column=([a]=90 [nodes]=290 [b]=480 [resource]=670)

# ink and paper change together, so that neither theme gets the other's.
cat <<SVG
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" role="img"
 aria-label="A is paused past its lease; B works with a larger token; the resource refuses A">
<style>
.paper { fill: #ffffff } .ink { stroke: #24292f; fill: none } .life { stroke: #8c959f }
.bad { stroke: #b3261e; fill: none } .pause { fill: #fff1c2; stroke: #9a6700 }
text { font: 13px sans-serif; fill: #24292f; text-anchor: middle }
.title { font-weight: bold } .refused { fill: #b3261e; font-weight: bold }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { stroke: #e6edf3 } .life { stroke: #6e7681 }
.bad { stroke: #ff7b72 } .pause { fill: #3b2e00; stroke: #d29922 }
text { fill: #e6edf3 } .refused { fill: #ff7b72 }
}
</style>
<defs>
<marker id="head" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto">
<path class="ink" d="M0 0 L8 4 L0 8"/></marker>
<marker id="badhead" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto">
<path class="bad" d="M0 0 L8 4 L0 8"/></marker>
</defs>
<rect class="paper" width="$width" height="$height" rx="6"/>
SVG

# lifeline WHO TITLE
lifeline() {
  local x=${column[$1]}
  printf '<text class="title" x="%d" y="28">%s</text>\n' "$x" "$2"
  printf '<path class="life" d="M%d 40 V%d" stroke-dasharray="3 4"/>\n' "$x" $((height - 16))
}

# message Y FROM TO TEXT [bad]: the text stands on the arrow.
message() {
  local y=$1 from=${column[$2]} to=${column[$3]} text=$4 kind=${5:-}
  local end=$((to > from ? to - 3 : to + 3))
  printf '<path class="%s" d="M%d %d H%d" marker-end="url(#%shead)"/>\n' \
    "${kind:-ink}" "$from" "$y" "$end" "$kind"
  printf '<text%s x="%d" y="%d">%s</text>\n' "${kind:+ class=\"refused\"}" \
    $(((from + to) / 2)) $((y - 6)) "$text"
}

# note Y WHO TEXT
note() {
  printf '<text x="%d" y="%d">%s</text>\n' "${column[$2]}" "$1" "$3"
}

# pause FROM_Y TO_Y WHO TEXT
pause() {
  local x=${column[$3]}
  printf '<rect class="pause" x="%d" y="%d" width="120" height="%d" rx="4"/>\n' \
    $((x - 60)) "$1" $(($2 - $1))
  printf '<text x="%d" y="%d">%s</text>\n' "$x" $((($1 + $2) / 2 + 4)) "$4"
}

lifeline a 'holder A'
lifeline nodes 'nodes'
lifeline b 'holder B'
lifeline resource 'resource'
message 70 a nodes 'acquire'
message 100 nodes a 'granted, token 33'
message 134 a resource 'stamp 33, then read'
message 164 resource a 'balance 100'
pause 184 430 a 'paused'
note 206 nodes 'the lease of A ends'
message 240 b nodes 'acquire'
message 270 nodes b 'granted, token 34'
message 304 b resource 'stamp 34, then read'
message 334 resource b 'balance 100'
message 368 b resource 'write 80, token 34'
message 398 resource b 'applied'
message 464 a resource 'write 150, token 33'
message 498 resource a 'refused: 33 is older than 34' bad
echo '</svg>'
