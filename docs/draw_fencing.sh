#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Draws the diagram of docs/fencing.md: docs/draw_fencing.sh >docs/fencing.svg. A repository test
# compares the two.
# shellcheck disable=SC2034  # the variables are for sequence.sh
set -euo pipefail

width=760
height=548
title='A is paused past its lease; B works with a larger token; the resource refuses A'
declare -A column=([a]=90 [nodes]=290 [b]=480 [resource]=670)

# shellcheck source=/dev/null
source "$(dirname "$0")/sequence.sh"

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
