// SPDX-License-Identifier: MIT
// What a node may answer while a connection is set up: for each command a part of the input, up to
// a byte 0xFF. An empty part is what a healthy node answers; one that begins with '$' is the text
// of a bulk string (INFO, which is the longest, comes so); one that begins with '*' has the
// elements of an array of bulk strings, divided by line breaks (markers, TIME); any other is what
// it is. Either the link comes up, or it says why not, and the command that waited is answered.
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/inputs.hpp"
#include "wire/rig.hpp"

namespace redlock::fuzz {
namespace {

std::string answer(std::string_view part) {
  if (part.starts_with('$')) return testing::bulk(part.substr(1));
  if (part.starts_with('*')) {
    part.remove_prefix(1);
    std::vector<std::string> elements;
    while (!part.empty()) elements.push_back(testing::bulk(take_part(part, '\n')));
    return testing::array(elements);
  }
  return std::string(part);
}

}  // namespace

void fuzz_one(std::string_view input) {
  int connections = 0;
  wire::LinkRig rig(
      [&](const testing::RedisCommand& command) {
        if (connections != 1) return wire::healthy(command);
        const std::string_view part = take_part(input, '\xff');
        return part.empty() ? wire::healthy(command) : answer(part);
      },
      {}, "redis://user:sesame@host");
  rig.submit(1, wire::LinkRig::acquire());
  connections = 1;
  rig.run();
  rig.accepts = false;
  rig.pass(std::chrono::seconds(5));
  REQUIRE(rig.replies.size() == 1);
  const bool up = !rig.warnings.empty();
  CHECK((up || !rig.downs.empty()));
  for (const auto& down : rig.downs) {
    CHECK_FALSE(down.detail.empty());
    CHECK(down.detail.find("sesame") == std::string::npos);
  }

  rig.replies.clear();
  rig.accepts = true;
  connections = 2;
  rig.pass(std::chrono::minutes(1));
  CHECK(std::holds_alternative<engine::Granted>(rig.call(wire::LinkRig::acquire())));
}

}  // namespace redlock::fuzz
