// SPDX-License-Identifier: MIT
// Records what unlock() could not do, as words: "name code".
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <redlock/observer.hpp>

#include "support/processes.hpp"

namespace redlock::testing {

class RecordingObserver : public Observer {
 public:
  void on_release_failed(std::string_view name, const Error& error) override {
    const std::scoped_lock lock(mutex_);
    recorded_.push_back(std::string(name) + ' ' + to_string(error.code));
  }
  [[nodiscard]] std::vector<std::string> recorded() const {
    const std::scoped_lock lock(mutex_);
    return recorded_;
  }
  bool records(const std::string& what) const {
    return eventually([&] {
      const auto all = recorded();
      return std::find(all.begin(), all.end(), what) != all.end();
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> recorded_;
};

}  // namespace redlock::testing
