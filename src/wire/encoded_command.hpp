// SPDX-License-Identifier: MIT
// The engine sends several nodes the same command at the same time: it is encoded once for all of
// them.
#pragma once

#include <optional>
#include <string>

#include "engine/messages.hpp"
#include "wire/script_call.hpp"

namespace redlock::wire {

/// The text that the connections of one client share; their layouts and holders are the same.
class EncodedCommand {
 public:
  /// The text of this command. Valid until the next call.
  [[nodiscard]] const CallParts& of(const engine::Command& command,
                                    const CallContext& context = {}) {
    if (latest_ != command || subscribed_ != context.subscribed ||
        membership_ != context.membership || client_ != context.client) {
      latest_.reset();  // if an allocation fails
      parts_.clear();
      parts_.add(command, context);
      subscribed_ = context.subscribed;
      membership_ = context.membership;
      client_ = context.client;
      latest_ = command;
    }
    return parts_;
  }

 private:
  std::optional<engine::Command> latest_;
  bool subscribed_ = false;
  std::string membership_;
  std::string client_;
  CallParts parts_;
};

}  // namespace redlock::wire
