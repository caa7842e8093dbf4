// SPDX-License-Identifier: MIT
// A client runs the scripts by their digests, and by their text where a node has lost them.
#include "admin/trial.hpp"

#include <string>

#include "net/kernel_random.hpp"
#include "wire/error_reply.hpp"
#include "wire/info_text.hpp"
#include "wire/key_layout.hpp"
#include "wire/script_set.hpp"

namespace redlock::admin {
namespace {

using wire::redlock_layout;
using wire::script_for;

constexpr auto* trial_name = "redlock-doctor";
constexpr auto* trial_client = "0000000000000000";
// A script goes on without a line, so what it replies to a waiter, and a message of our own, show
// whether there is one.
constexpr std::size_t place_of_waiting = 2;
constexpr std::size_t place_of_message = 6;
constexpr auto* trial_lease_ms = "1000";  // it ends by itself where giving it back is refused

wire::ScriptSet scripts_for(const NodeHealth& node) {
  const auto version = wire::ServerVersion::parse(node.version.value_or(""));
  return wire::ScriptSet(version.has_script_flags() ? wire::ScriptSet::Flags::understood
                                                    : wire::ScriptSet::Flags::unknown);
}

}  // namespace

std::vector<QueryCommand> trial_of(const NodeHealth& node) {
  if (node.role.value_or("master") != "master" || node.cluster) return {};
  const auto scripts = scripts_for(node);
  const auto lock = redlock_layout.lock(trial_name);
  const auto fence = redlock_layout.fence(trial_name);
  const auto line = redlock_layout.line(trial_name);
  const auto waiters = redlock_layout.waiters(trial_name);
  net::KernelRandom random;
  const auto owner = engine::to_hex(random.next_owner());
  const auto other = engine::to_hex(random.next_owner());
  const auto forced = redlock_layout.forced(trial_name, owner);
  const std::string nobody(40, '0');  // the digest of no script
  const std::string waiter = std::string(trial_client) + ":1";
  const auto source = [&](wire::Script script) { return std::string(scripts.source(script)); };
  const std::string acquire = source(script_for<engine::AcquireCommand>);
  // Whatever the marker says.
  return {
      {"EVAL", acquire, "5", lock, fence, forced, line, waiters, owner, trial_lease_ms, "1", "", "",
       ""},
      {"EVAL", source(script_for<engine::HoldCommand>), "3", lock, fence, forced, owner, "1", "1",
       trial_lease_ms},
      {"EVAL", acquire, "5", lock, fence, redlock_layout.forced(trial_name, other), line, waiters,
       other, trial_lease_ms, "1", "", "", "p", waiter, "0", "60", ""},
      {"EVAL", source(script_for<engine::ReleaseCommand>), "3", lock, line, waiters, owner, "2"},
      {"EVAL", source(script_for<engine::LeaveCommand>), "3", lock, line, waiters, waiter},
      {"EVALSHA", nobody, "2", lock, fence},
      {"PUBLISH", redlock_layout.channel(trial_client), ""}};
}

NodeTrouble refusal_of(const NodeAnswers& answers, const wire::NodeAddress& node) {
  for (std::size_t i = 0; i < answers.answers.size(); ++i) {
    if (i == place_of_message) continue;
    auto trouble = trouble_of(answers.answers[i], node);
    // The user was allowed to run a script by its digest: nothing else was to be found out.
    if (trouble.cause != Cause::none && !wire::is_no_script(trouble.detail)) return trouble;
  }
  return {};
}

bool serves_in_order(const NodeAnswers& answers, const wire::NodeAddress& node) {
  const bool placed = texts_of(answers.answers[place_of_waiting]).size() == 3;
  const auto message = trouble_of(answers.answers[place_of_message], node);
  return answers.wakes && placed && message.cause == Cause::none;
}

}  // namespace redlock::admin
