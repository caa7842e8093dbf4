// SPDX-License-Identifier: MIT
// Texts that are kept on nodes or come from them, where anybody may have written them: INFO, who
// holds a lock, errors, the time. Whatever they are, what is read of them stays within its bounds,
// and what is shown of them is printable.
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "fuzz/inputs.hpp"
#include "wire/error_reply.hpp"
#include "wire/holder_text.hpp"
#include "wire/info_text.hpp"

namespace redlock::fuzz {
namespace {

bool controls_terminal(unsigned char c) {
  return c < ' ' || c == 0x7f;
}

}  // namespace

void fuzz_one(std::string_view input) {
  const wire::InfoText info(input);
  CHECK(info.uptime() >= std::chrono::seconds(0));
  CHECK(info.uptime() <= std::chrono::nanoseconds::max());
  static_cast<void>(info.version());
  CHECK(info.promotion().empty() == info.value("run_id").empty());

  if (const auto holder = wire::read_holder(input)) {
    CHECK(holder->host.size() + holder->label.size() <= input.size());
  }

  const auto why = wire::to_unavailable(input, "sesame");
  CHECK(why.cause != Cause::none);
  CHECK_FALSE(why.detail.empty());
  CHECK(std::ranges::none_of(why.detail, controls_terminal));
  CHECK(why.detail.find("sesame") == std::string::npos);

  std::string_view rest = input;
  const std::string_view seconds = take_part(rest, ' ');
  CHECK(wire::unix_microseconds(seconds, rest) >= 0);
}

}  // namespace redlock::fuzz
