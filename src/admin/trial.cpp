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
  net::KernelRandom random;
  const auto owner = engine::to_hex(random.next_owner());
  const std::string nobody(40, '0');  // the digest of no script
  return {{"EVAL", scripts.source(script_for<engine::AcquireCommand>), "2", lock, fence, owner,
           trial_lease_ms, "1"},
          {"EVAL", scripts.source(script_for<engine::HoldCommand>), "2", lock, fence, owner, "1",
           "1", trial_lease_ms},
          {"EVAL", scripts.source(script_for<engine::ReleaseCommand>), "1", lock, owner},
          {"EVALSHA", nobody, "2", lock, fence}};
}

NodeTrouble refusal_of(const wire::Answer& answer, const wire::NodeAddress& node) {
  auto trouble = trouble_of(answer, node);
  // It was allowed to run a script by its digest: that is all there was to find out.
  if (wire::is_no_script(trouble.detail)) return {};
  return trouble;
}

}  // namespace redlock::admin
