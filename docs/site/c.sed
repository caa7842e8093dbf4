# SPDX-License-Identifier: MIT
# A header in C, whose comments are of one kind: those for Doxygen are made of them.
1s|.*|/** @file|
2s|^/[*]| *|
3,$s|^\( *\)/[*] |\1/** |
3,$s|\([;,0-9] *\)/[*] |\1/**< |
