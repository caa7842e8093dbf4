// SPDX-License-Identifier: MIT
// The note beside the owner of a lock that says which program took it: what stands in it, and what
// is made of a note that somebody else wrote.
#include <doctest/doctest.h>
#include <string>

#include "wire/holder_text.hpp"

namespace redlock::net {
using namespace wire;
namespace {

using std::chrono::milliseconds;

std::int64_t unix_us() {
  return std::chrono::floor<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}
std::int64_t unix_ms() {
  return unix_us() / 1'000;
}

TEST_CASE("a holder's text says since when, which process, on which host, and what it is") {
  HolderText text("web-1", 4711, "nightly backup");
  text.set_clock(BootClock::now(), unix_us());
  const auto before = unix_ms();
  const auto fields = read_holder(text.since(BootClock::now()));
  REQUIRE(fields);
  CHECK(fields->pid == 4711);
  CHECK(fields->host == "web-1");
  CHECK(fields->label == "nightly backup");
  CHECK(fields->since_unix_ms >= before - 1);
  CHECK(fields->since_unix_ms <= unix_ms() + 1);
}

TEST_CASE("a node that is healed is told of the same moment, to the millisecond") {
  HolderText text("web-1", 1, "x");
  text.set_clock(BootClock::now(), unix_us());
  const auto began = BootClock::now();
  const std::string first(text.since(began));
  const std::string other(text.since(began + milliseconds(7'000)));
  CHECK(std::string(text.since(began)) == first);
  CHECK(read_holder(other)->since_unix_ms == read_holder(first)->since_unix_ms + 7'000);
}

TEST_CASE("for another grant only the moment is written anew, in place") {
  HolderText text("some-host", 4711, "a label that fits into no small string");
  const auto began = BootClock::now();
  const char* const place = text.since(began).data();
  for (int i = 1; i < 10; ++i) CHECK(text.since(began + milliseconds(i)).data() == place);
}

TEST_CASE("what cannot be shown is replaced, and what is too long is cut between characters") {
  HolderText text("a host\n", 1, "red\x1b[31m\x7f");
  const auto fields = read_holder(text.since(BootClock::now()));
  REQUIRE(fields);
  CHECK(fields->host == "a?host?");
  CHECK(fields->label == "red?[31m?");

  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xbc";
  HolderText longer(std::string(300, 'h'), 1, "-" + umlauts);
  const auto cut = read_holder(longer.since(BootClock::now()));
  REQUIRE(cut);
  CHECK(cut->host == std::string(64, 'h'));
  CHECK(cut->label == "-" + umlauts.substr(0, 62));
}

TEST_CASE("a text that says nothing stays empty") {
  CHECK(HolderText().since(BootClock::now()).empty());
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
}  // namespace redlock::net
