// SPDX-License-Identifier: MIT
// Which of a client's leases are of a name: for the one question whether the client contends with
// itself. A program may hold very many, so they are not to be looked through one by one; and a
// grant is not to cost an allocation more for it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory_resource>
#include <string>
#include <unordered_map>

#include "engine/types.hpp"

namespace redlock::api {

class HeldNames {
 public:
  void insert(const std::string& name, engine::GrantId grant) {
    grants_.emplace(std::hash<std::string>()(name), grant);
  }
  void erase(const std::string& name, engine::GrantId grant) {
    const auto [begin, end] = grants_.equal_range(std::hash<std::string>()(name));
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second != grant) continue;
      grants_.erase(entry);
      return;
    }
  }
  /// Whether one of the grants that may be of this name (another name may have its hash) is so.
  template <typename Predicate>
  [[nodiscard]] bool any_of(const std::string& name, Predicate is_so) const {
    const auto [begin, end] = grants_.equal_range(std::hash<std::string>()(name));
    for (auto entry = begin; entry != end; ++entry) {
      if (is_so(entry->second)) return true;
    }
    return false;
  }

 private:
  std::pmr::unsynchronized_pool_resource memory_;
  std::pmr::unordered_multimap<std::size_t, engine::GrantId> grants_{&memory_};
};

}  // namespace redlock::api
