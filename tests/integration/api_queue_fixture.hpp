// SPDX-License-Identifier: MIT
// What the tests of waiting in order share: a look at the nodes' lines, calls that wait, and in
// which order they had the lock.
#pragma once

#include "integration/api_fixture.hpp"

namespace redlock::testing {

/// Who waits, and what is known of those.
inline std::vector<std::string> keys_of_queue(const std::string& name) {
  return {"redlock:line:{" + name + "}", "redlock:waiters:{" + name + "}"};
}

/// Entries in the queue of one node.
inline std::size_t entries_on(const Fleet& fleet, std::size_t node, const std::string& name) {
  return std::stoul(fleet.run(node, {"ZCARD", keys_of_queue(name)[0]}));
}

/// Until that many are entered on every node that runs.
inline bool queue_becomes(const Fleet& fleet, const std::string& name, std::size_t count) {
  return eventually([&] {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      if (fleet.state(node) != cluster::NodeState::running) continue;
      if (entries_on(fleet, node, name) != count) return false;
    }
    return true;
  });
}

/// How many of the two keys of the queue there are, on all nodes that run.
inline std::size_t queue_keys(const Fleet& fleet, const std::string& name) {
  std::size_t count = 0;
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    if (fleet.state(node) != cluster::NodeState::running) continue;
    for (const auto& key : keys_of_queue(name)) {
      count += std::stoul(fleet.run(node, {"EXISTS", key}));
    }
  }
  return count;
}

/// From now on what is left behind would stay: by itself a queue is gone within seconds.
inline void let_queue_stay(const Fleet& fleet, const std::string& name) {
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    for (const auto& key : keys_of_queue(name)) fleet.run(node, {"PERSIST", key});
  }
}

/// As a failed check prints it.
inline std::string in_words(const std::vector<int>& order) {
  std::string text;
  for (const int who : order) text += (text.empty() ? "" : " ") + std::to_string(who);
  return text;
}

/// Who has had the lock, in order.
class Grants {
 public:
  void note(int who) {
    const std::scoped_lock lock(mutex_);
    order_.push_back(who);
    changed_.notify_all();
  }
  /// As soon as there are that many: all, as words, whatever their order was.
  std::string await_sorted(std::size_t count) {
    auto all = await(count);
    std::ranges::sort(all);
    return in_words(all);
  }
  /// All of them, as soon as there are that many.
  std::vector<int> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 2 * patience, [&] { return order_.size() >= count; }));
    return order_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::scoped_lock lock(mutex_);
    return order_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
};

inline constexpr int failed_to_wait = -1;

/// Waiters of a lock on nodes that are well, which one client holds first.
struct Waiters {
  const Fleet& fleet = three_nodes();
  Grants grants;
  Client holder = start_client(fleet);
};

/// Waits for the lock, and gives it back as soon as it has it. The client has to end before
/// `grants`.
inline void wait_as(int who, const Client& client, Grants& grants, const std::string& name,
                    AcquireOptions options = {.wait = forever}) {
  client.lock(name).async_acquire(options).start(
      [&grants, who](const Result<Lease>& lease) { grants.note(lease ? who : failed_to_wait); });
}

/// Two calls of each of three clients, which begin to wait one after the other for a lock that is
/// held. Each client stands on every node for the first of its calls; nodes do not see the other
/// one, so only time lies between those.
class SixWaiters {
 public:
  SixWaiters(const Fleet& fleet, const std::string& name, const ClientOptions& options) {
    constexpr std::size_t clients = 3;
    for (std::size_t i = 0; i < clients; ++i) clients_.push_back(start_client(options));
    constexpr std::array<std::size_t, 2 * clients> client_of{2, 0, 1, 1, 0, 2};
    for (std::size_t i = 0; i < client_of.size(); ++i) {
      wait_as(static_cast<int>(i), clients_[client_of[i]], grants_, name);
      REQUIRE(queue_becomes(fleet, name, std::min(i + 1, clients)));
      std::this_thread::sleep_for(5ms);  // more than the delays of messages differ
    }
  }
  /// As soon as all have had it.
  std::string order() { return in_words(grants_.await(6)); }

 private:
  Grants grants_;
  std::vector<Client> clients_;
};

/// A turn lasts 20 ms. On a busy machine somebody who was woken may be late for it, and others have
/// the lock first. So the order has to appear in one of a few rounds, each of which returns the one
/// that it saw; by chance it would once in 720. All are served in every round.
template <typename Round>
bool served_in_order(const Round& round) {
  for (int i = 0; i < 10; ++i) {
    const std::string order = round();
    auto sorted = order;
    std::ranges::sort(sorted);
    REQUIRE(sorted == "     012345");
    if (order == "0 1 2 3 4 5") return true;
  }
  return false;
}

}  // namespace redlock::testing
