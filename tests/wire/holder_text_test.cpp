// SPDX-License-Identifier: MIT
// The note beside the owner of a lock that says which program took it: what stands in it, and what
// is made of a note that somebody else wrote.
#include "wire/holder_text.hpp"

#include <doctest/doctest.h>
#include <string>

namespace redlock::wire {
namespace {

using std::chrono::milliseconds;

constexpr engine::Instant boot_1h{std::chrono::hours(1)};
constexpr std::int64_t unix_us = 1'700'000'000'123'456;

TEST_CASE("a holder's text says since when, which process, on which host, and what it is") {
  HolderText text("web-1", 4711, "nightly backup");
  text.set_clock(boot_1h, unix_us);
  const auto fields = read_holder(text.since(boot_1h + milliseconds(7)));
  REQUIRE(fields);
  CHECK(fields->pid == 4711);
  CHECK(fields->host == "web-1");
  CHECK(fields->label == "nightly backup");
  CHECK(fields->since_unix_ms == 1'700'000'000'130);
}

TEST_CASE("a node that is healed is told of the same moment, unless the clock was set") {
  HolderText text("web-1", 1, "x");
  text.set_clock(boot_1h, unix_us);
  const std::string first(text.since(boot_1h));
  text.set_clock(boot_1h + milliseconds(5'000), unix_us + 5'000'000 + 90'000);  // it drifts
  const std::string other(text.since(boot_1h + milliseconds(7'000)));
  CHECK(std::string(text.since(boot_1h)) == first);
  CHECK(read_holder(other)->since_unix_ms == read_holder(first)->since_unix_ms + 7'000);
  text.set_clock(boot_1h, unix_us + 3'600'000'000);
  CHECK(read_holder(text.since(boot_1h))->since_unix_ms ==
        read_holder(first)->since_unix_ms + 3'600'000);
}

TEST_CASE("for another grant only the moment is written anew, in place") {
  HolderText text("some-host", 4711, "a label that fits into no small string");
  const char* const place = text.since(boot_1h).data();
  for (int i = 1; i < 10; ++i) CHECK(text.since(boot_1h + milliseconds(i)).data() == place);
}

TEST_CASE("what cannot be shown is replaced, and what is too long is cut between characters") {
  HolderText text("a host\n", 1, "red\x1b[31m\x7f");
  const auto fields = read_holder(text.since(boot_1h));
  REQUIRE(fields);
  CHECK(fields->host == "a?host?");
  CHECK(fields->label == "red?[31m?");

  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xbc";
  HolderText longer(std::string(300, 'h'), 1, "-" + umlauts);
  const auto cut = read_holder(longer.since(boot_1h));
  REQUIRE(cut);
  CHECK(cut->host == std::string(64, 'h'));
  CHECK(cut->label == "-" + umlauts.substr(0, 62));
}

TEST_CASE("a text that says nothing stays empty") {
  CHECK(HolderText().since(boot_1h).empty());
}

TEST_CASE("what is no holder's text is none") {
  for (const char* text : {"", "1", "1 2", "1 2 ", "1 2 host", "1 2  label", "x 2 host label",
                           "1 -2 host label", "-1 2 host label", "99999999999999 2 host label",
                           "1 99999999999999999999999 host label", " 1 2 host label"}) {
    CAPTURE(text);
    CHECK_FALSE(read_holder(text));
  }
  CHECK(read_holder("1 2 host ")->label.empty());
}

}  // namespace
}  // namespace redlock::wire
