// SPDX-License-Identifier: MIT
// The entry of a fuzz target. Built with REDLOCK_FUZZ, libFuzzer calls it with bytes of its own;
// otherwise it is a program that runs the inputs of a corpus: a file with one input in hexadecimal
// digits on each line.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/inputs.hpp"

namespace {

void abort_if_failed(const doctest::AssertData& check) {
  if (!check.m_failed) return;
  std::fprintf(stderr, "%s:%d: %s is not so: %s\n", check.m_file, check.m_line, check.m_expr,
               check.m_decomp.c_str());
  std::abort();
}

void let_checks_abort() {
  static doctest::Context context;
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler(abort_if_failed);
}

}  // namespace

#ifdef REDLOCK_FUZZ

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  let_checks_abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  redlock::fuzz::fuzz_one({reinterpret_cast<const char*>(bytes), size});
  return 0;
}

#else

namespace {

std::optional<std::string> from_hexadecimal(std::string_view line) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string bytes;
  if (line.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < line.size(); i += 2) {
    const std::size_t high = digits.find(line[i]);
    const std::size_t low = digits.find(line[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr,
                 "usage: %s CORPUS\nRuns the inputs of the file CORPUS, one in hexadecimal digits "
                 "on each line. To look for new ones: ./dev fuzz\n",
                 argv[0]);
    return 64;
  }
  std::ifstream corpus(argv[1]);
  if (!corpus) {
    std::fprintf(stderr, "cannot read %s\n", argv[1]);
    return 1;
  }
  let_checks_abort();
  int inputs = 0;
  for (std::string line; std::getline(corpus, line); ++inputs) {
    const auto input = from_hexadecimal(line);
    if (!input) {
      std::fprintf(stderr, "%s:%d is no line of hexadecimal digits\n", argv[1], inputs + 1);
      return 1;
    }
    redlock::fuzz::fuzz_one(*input);
  }
  std::printf("%d inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}

#endif
