// SPDX-License-Identifier: MIT
// What a node may send once its connection is up and commands await their answers: any bytes, cut
// anywhere. Each command is answered once, whatever they are, and the link can be used again.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "fuzz/inputs.hpp"
#include "wire/rig.hpp"

namespace redlock::fuzz {
namespace {

using wire::LinkRig;

constexpr std::uint64_t commands = 12;

void submit_all(LinkRig& rig) {
  for (std::uint64_t i = 0; i < commands; i += 4) {
    const std::string name = "n" + std::to_string(i);
    rig.submit(i, LinkRig::acquire(name));
    rig.submit(i + 1, LinkRig::hold(name));
    rig.submit(i + 2, LinkRig::release(name));
    // Goes with the release before it in one call.
    rig.submit(i + 3, LinkRig::acquire(name, 2));
  }
}

}  // namespace

void fuzz_one(std::string_view input) {
  bool silent = false;
  LinkRig rig([&](const auto& command) { return silent ? std::string() : wire::healthy(command); });
  rig.run();
  REQUIRE(rig.warnings.size() == 1);
  rig.accepts = false;
  silent = true;
  submit_all(rig);
  const std::uint8_t choices = take_byte(input);
  if ((choices & 1) != 0) rig.ask({"SLOWLOG", "GET"});
  rig.run();

  const std::size_t piece = (choices >> 1) == 0 ? input.size() : choices >> 1;
  while (!input.empty() && rig.is_open()) {
    rig.receive(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
  }
  if (rig.is_open()) rig.break_stream();

  std::map<std::uint64_t, int> answers;
  for (const auto& reply : rig.replies) ++answers[reply.first];
  CHECK(answers.size() == commands);
  for (const auto& [number, times] : answers) CHECK(times == 1);

  // A new connection to a node that is well again.
  rig.accepts = true;
  silent = false;
  rig.replies.clear();
  rig.pass(std::chrono::minutes(1));
  CHECK(std::holds_alternative<engine::Granted>(rig.call(LinkRig::acquire())));
}

}  // namespace redlock::fuzz
