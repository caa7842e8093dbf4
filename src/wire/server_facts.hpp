// SPDX-License-Identifier: MIT
// The facts that the handshake found about a node.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/nodes/set_configuration.hpp"
#include "wire/script_set.hpp"

namespace redlock::wire {

struct ServerFacts {
  std::string run_id;  ///< new with every start of the server; empty if INFO is not permitted
  std::int64_t client_id = 0;   ///< the node's number for this connection; 0 if not known
  std::int64_t unix_us = 0;     ///< its TIME, in microseconds; 0 if not known
  std::optional<bool> durable;  ///< appendonly yes and appendfsync always; none if not readable
  std::optional<engine::Membership> marker;  ///< what it says; none: there is none
  std::string vouched;    ///< the promotion for which its marker vouches; may be empty
  std::string promotion;  ///< the promotion that an operator vouches for by adopting a former
                          ///< replica
  bool was_replica = false;
  std::string role;               ///< empty if INFO is not permitted
  std::string replid;             ///< another one with every promotion, among other occasions
  std::chrono::seconds uptime{};  ///< zero if not known
  std::chrono::milliseconds clock_noted{};  ///< for how long another client's note says that its
                                            ///< clock is not to be trusted
  /// What the key of the identity check holds there; empty: nothing. None: not asked, or refused.
  std::optional<std::string> identity;
  std::string identity_refusal;  ///< why the node does not say what the key holds
  bool subscribed = false;       ///< the node wakes this client's waiters
  bool name_is_shared = false;   ///< and wakes another client by the same name, perhaps
  std::string warnings;          ///< the unsafe findings, sentences joined by "; "
  ScriptSet scripts{ScriptSet::Flags::unknown};

  void warn(std::string_view sentence) {
    if (!warnings.empty()) warnings += "; ";
    warnings += sentence;
  }
};

}  // namespace redlock::wire
