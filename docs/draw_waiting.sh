#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the diagram of docs/waiting.md: docs/draw_waiting.sh >docs/waiting.svg. A repository test
# compares the two.
# shellcheck disable=SC2034  # the variables are for sequence.sh
set -euo pipefail

width=760
height=516
title='A releases; each node tells B that its turn has come, and two tell C when that is over'
declare -A column=([a]=90 [node]=290 [b]=490 [c]=670)
# shellcheck source=/dev/null
source "$(dirname "$0")/sequence.sh"

lifeline a 'holder A'
lifeline node 'each node'
lifeline b 'waiter B'
lifeline c 'waiter C'
message 70 a node 'acquire'
message 100 node a 'granted'
message 134 b node 'acquire, waited 0 s'
message 164 node b 'refused, 0 before you'
message 198 c node 'acquire, waited 0 s'
message 228 node c 'refused, 1 before you'
message 276 a node 'release'
message 306 node b 'your turn (kept for 20 ms)'
message 336 node c 'yours in 20 ms, if B does not come'
message 366 node a 'released'
message 414 b node 'acquire, waited 3 s'
message 444 node b 'granted'
note 484 b 'two round trips after A gave it back'
echo '</svg>'
