// SPDX-License-Identifier: MIT
// Who waits for the locks of one node: what queue.lua keeps beside a lock, and what the scripts do
// with it, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace redlock::simulation {

/// A script's argument `order`.
struct Order {
  bool in_order = false;
  std::string waiter;  ///< empty: nobody waits
  std::int64_t ticket = 0;
  char manner = 0;          ///< 'w' or 'p'; 0: the waiter of a release leaves
  bool first_only = false;  ///< of a release: the second waiter is not told
};

/// Those who are subscribed to channels of the node.
class Publisher {
 public:
  /// How many it has reached; nothing if the user of the script may not publish.
  virtual std::optional<std::size_t> publish(const std::string& client,
                                             const std::string& text) = 0;

 protected:
  ~Publisher() = default;
};

class NodeQueues {
 public:
  /// What the node lets a script write at the moment.
  enum class Writes : std::uint8_t { all, no_growth, none };

  struct Entry {
    std::string waiter;
    std::int64_t ticket = 0;
    std::int64_t alive_until_ms = 0;
    char manner = 'p';
  };
  struct Queue {
    std::vector<Entry> entries;  // in their order
    std::string turn;
    std::int64_t turn_ends_ms = 0;
    std::int64_t ends_ms = 0;
  };
  struct Kept {
    std::int64_t for_ms = 0;
    std::uint32_t place = 0;
  };

  /// One call: which lock, who asks, when, and whom it can tell.
  struct Call {
    const std::string& name;
    const Order& order;
    std::int64_t now_ms = 0;
    Writes writes = Writes::all;
    Publisher* publisher = nullptr;
  };

  /// Null if nobody waits.
  [[nodiscard]] const Queue* find(const std::string& name, std::int64_t now_ms) const;
  /// What a script finds over is deleted.
  void expire(const std::string& name, std::int64_t now_ms);
  void clear() { queues_.clear(); }

  // As the functions of queue.lua.

  /// Its place; nothing if the node refuses that.
  std::optional<std::uint32_t> enter(const Call& call);
  std::optional<Kept> kept_for_another(const Call& call);
  void after_grant(const Call& call);
  void after_release(const Call& call, bool freed, bool is_free);

 private:
  enum class Given : std::uint8_t { to_another, to_nobody, refused };

  Given give_turn(const Call& call, const std::string& asker);
  /// Whether there is somebody to take it; nothing if it could not be removed.
  std::optional<bool> tell(const Call& call, Queue& queue, std::size_t at, std::int64_t after);
  static void remove(Queue& queue, const std::string& waiter);
  static std::uint32_t place(const Queue& queue, const std::string& waiter);
  void forget_if_empty(const std::string& name);

  std::map<std::string, Queue> queues_;
};

}  // namespace redlock::simulation
