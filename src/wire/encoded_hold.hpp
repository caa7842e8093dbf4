// SPDX-License-Identifier: MIT
// A round sends all nodes the same hold at the same time: it is encoded once for all of them.
#pragma once

#include <optional>
#include <utility>

#include "engine/messages.hpp"
#include "wire/script_call.hpp"

namespace redlock::wire {

/// The text that the connections of one client share.
class EncodedHold {
 public:
  /// The text of this hold. Valid until the next call.
  [[nodiscard]] const CallParts& of(engine::HoldCommand command, const CallContext& context = {}) {
    if (!latest_ || *latest_ != command) {
      parts_.clear();
      parts_.add(command, context);
      latest_ = std::move(command);
    }
    return parts_;
  }

 private:
  std::optional<engine::HoldCommand> latest_;
  CallParts parts_;
};

}  // namespace redlock::wire
