// SPDX-License-Identifier: MIT
// Included first by every public header: an older standard ends the compilation with one sentence.
#pragma once

#if __cplusplus < 202002L
// After #error a compiler goes on and reports everything that C++17 does not have. It stops at a
// file that does not exist, so the sentence is the name of one. #error is for compilers that go on.
#define REDLOCK_NEEDS_CPP20 "redlock needs C++20 or newer: compile with -std=c++20"
#include REDLOCK_NEEDS_CPP20
#error redlock needs C++20 or newer: compile with -std=c++20
#endif
