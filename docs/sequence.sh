# SPDX-License-Identifier: MIT
# What the scripts that draw sequences of messages share. Before: width, height, title and column
# (where whose life line is).
# shellcheck shell=bash disable=SC2154

# ink and paper change together, so that neither theme gets the other's.
cat <<SVG
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" role="img"
 aria-label="$title">
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
