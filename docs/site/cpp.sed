# SPDX-License-Identifier: MIT
# The licence line becomes the beginning of the page of a header, the sentences below its text.
1s|.*|/// @file|
2,/^[^/]/s|^//|///|
