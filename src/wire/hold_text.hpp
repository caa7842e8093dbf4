// SPDX-License-Identifier: MIT
// A round asks all nodes the same at the same time: what it asks is spelled once for all of them.
#pragma once

#include <optional>
#include <utility>

#include "engine/messages.hpp"
#include "wire/script_call.hpp"

namespace redlock::wire {

/// What the connections of one loop share.
class HoldText {
 public:
  /// Of this hold. Until the next call.
  [[nodiscard]] const CallParts& of(engine::HoldCommand command) {
    if (!latest_ || *latest_ != command) {
      latest_.reset();
      parts_.clear();
      parts_.add(command);
      latest_ = std::move(command);
    }
    return parts_;
  }

 private:
  std::optional<engine::HoldCommand> latest_;
  CallParts parts_;
};

}  // namespace redlock::wire
