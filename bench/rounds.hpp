// SPDX-License-Identifier: MIT
// The flags of our own that the benchmarks have, beside those of Google Benchmark.
#pragma once

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

namespace bench {

/// Removes `flag VALUE` from the arguments; the value, if it was there.
inline std::optional<std::string> take_flag(int& argc, char** argv, const char* flag) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], flag) != 0) continue;
    std::string value = argv[i + 1];
    for (int j = i; j + 2 < argc; ++j) argv[j] = argv[j + 2];
    argc -= 2;
    argv[argc] = nullptr;
    return value;
  }
  return {};
}

/// `--rounds N`; `usual` if it is not there.
inline int take_rounds(int& argc, char** argv, int usual) {
  const auto value = take_flag(argc, argv, "--rounds");
  const int rounds = value ? std::atoi(value->c_str()) : usual;
  return rounds > 0 ? rounds : usual;
}

}  // namespace bench
