// SPDX-License-Identifier: MIT
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include <redlock/fence_guard.hpp>

namespace redlock {

struct FenceGuard::Resource {
  std::mutex turn;
  std::atomic<std::thread::id> inside;         // whose turn it is
  std::atomic<std::uint64_t> largest_token{};  // written by whose turn it is
};

class FenceGuard::Impl {
 public:
  explicit Impl(std::size_t limit) : limit_(limit) {}

  /// Null if it is new and there is no room for it.
  Resource* find_or_add(std::string_view name) {
    if (Resource* const known = find(name)) return known;
    const std::unique_lock lock(mutex_);
    if (resources_.size() >= limit_ && !resources_.contains(name)) return nullptr;
    return &resources_.try_emplace(std::string(name)).first->second;
  }

  Resource* find(std::string_view name) {
    const std::shared_lock lock(mutex_);
    const auto found = resources_.find(name);
    return found == resources_.end() ? nullptr : &found->second;
  }

  std::size_t size() {
    const std::shared_lock lock(mutex_);
    return resources_.size();
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  const std::size_t limit_;
  std::shared_mutex mutex_;
  // Its elements stay where they are, and none is ever removed.
  std::unordered_map<std::string, Resource, Hash, std::equal_to<>> resources_;
};

FenceGuard::FenceGuard(std::size_t limit) : impl_(std::make_unique<Impl>(limit)) {}

FenceGuard::~FenceGuard() = default;

void FenceGuard::Leave::operator()(Resource* resource) const {
  resource->inside = std::thread::id();
  resource->turn.unlock();
}

tl::expected<FenceGuard::Turn, FenceRefusal> FenceGuard::enter(std::string_view resource,
                                                               std::uint64_t token) {
  using Why = FenceRefusal::Why;
  if (token == 0) return tl::make_unexpected(FenceRefusal{Why::stale, seen(resource).value_or(0)});
  Resource* const found = impl_->find_or_add(resource);
  if (found == nullptr) return tl::make_unexpected(FenceRefusal{Why::full, 0});
  if (found->inside == std::this_thread::get_id()) {
    return tl::make_unexpected(FenceRefusal{Why::nested, found->largest_token});
  }
  found->turn.lock();
  found->inside = std::this_thread::get_id();
  Turn turn(found);
  const std::uint64_t largest = found->largest_token;
  if (token < largest) return tl::make_unexpected(FenceRefusal{Why::stale, largest});
  found->largest_token = token;
  return turn;
}

tl::expected<void, FenceRefusal> FenceGuard::stamp(std::string_view resource, std::uint64_t token) {
  return run(resource, token, [] {});
}

std::optional<std::uint64_t> FenceGuard::seen(std::string_view resource) const {
  const Resource* const found = impl_->find(resource);
  // A resource that a call has added but not stamped yet has seen no token.
  if (found == nullptr || found->largest_token == 0) return std::nullopt;
  return found->largest_token;
}

std::size_t FenceGuard::size() const {
  return impl_->size();
}

}  // namespace redlock
