// SPDX-License-Identifier: MIT
// A function for the loop thread: work that is posted for later and is not a task by itself (as a
// call and a lease are, which cost no allocation).
#pragma once

#include <memory>
#include <utility>

#include "net/task.hpp"

namespace redlock::client {

/// On the heap. It destroys itself when it has run; a caller that could not post it destroys it.
template <typename Function>
class PostedFunction final : public net::Task {
 public:
  explicit PostedFunction(Function&& function) : function_(std::move(function)) {}

  void run() override {
    const std::unique_ptr<PostedFunction> self(this);
    function_();
  }

 private:
  Function function_;
};

}  // namespace redlock::client
