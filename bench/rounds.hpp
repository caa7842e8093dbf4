// SPDX-License-Identifier: MIT
// The one flag of our own that the benchmarks have, beside those of Google Benchmark.
#pragma once

#include <cstdlib>
#include <cstring>

namespace bench {

/// Removes `--rounds N` from the arguments; `usual` if it is not there.
inline int take_rounds(int& argc, char** argv, int usual) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") != 0) continue;
    const int rounds = std::atoi(argv[i + 1]);
    for (int j = i; j + 2 < argc; ++j) argv[j] = argv[j + 2];
    argc -= 2;
    argv[argc] = nullptr;
    return rounds > 0 ? rounds : usual;
  }
  return usual;
}

}  // namespace bench
