// SPDX-License-Identifier: MIT
// One Redis node as far as the scripts can tell: locks with an owner and an expiry by the
// node's wall clock, fences, and the states in which a node refuses to work. It is compared with a
// real redis-server in node_model_test.cpp; what this file says, Redis 7 does.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/messages.hpp"
#include "simulation/node_queues.hpp"

namespace redlock::simulation {

/// What a call contains beside its command, and whom its script can tell.
struct ScriptCaller {
  std::string_view set = {};  ///< that the marker names, to an acquire that wants one
  Order order = {};
  Publisher* publisher = nullptr;
  /// It is one of the two commands of pass.lua: that script says of itself that it runs.
  bool in_pass = false;
  /// The lock goes from the one to the other, whose turn it is.
  bool passes = false;
  /// A command before it in the same call has written.
  bool wrote = false;
};

class NodeModel {
 public:
  /// What can be wrong with a node that answers.
  enum class Ailment : std::uint8_t {
    none,
    loading,    ///< refuses everything
    busy,       ///< refuses everything
    misconf,    ///< refuses what writes, because it cannot persist
    read_only,  ///< refuses what writes: a replica
    full,       ///< at maxmemory: refuses a new lock, not hold and release
  };

  struct Lock {
    engine::OwnerId owner;
    std::uint32_t count = 1;
    std::optional<std::int64_t> ends_ms;  ///< none: it never expires
    bool foreign_type = false;            ///< not a lock of ours but a key of another type
  };
  /// Who was forced out of a lock, in this order, and until when they are turned away.
  struct ForcedOwners {
    std::vector<engine::OwnerId> owners;
    std::int64_t ends_ms = 0;
  };
  /// A counter; or text that is none; or a key of another type.
  struct Damaged {};
  struct WrongType {};
  using Fence = std::variant<engine::Token, Damaged, WrongType>;

  /// The hash that says which set of nodes this one belongs to; an empty field is not there.
  struct Marker {
    std::string id = {};
    std::string layout = {};
    std::string nodes = {};
    std::string max_lease_ms = {};
    std::string set = {};
    std::string vouched = {};
  };
  /// What pending.lua and adopt.lua reply; `pending` stands for the id, `marked` for the fields of
  /// the marker that is there.
  enum class MarkerReply : std::uint8_t { pending, written, marked };

  /// Runs one script. Time stands still in it.
  engine::Reply execute(const engine::Command& command, engine::Form form, std::int64_t now_ms,
                        const ScriptCaller& caller = {});
  /// Begins pass.lua: what refuses the whole call, if anything does.
  std::optional<engine::Reply> begin_pass(engine::Form form);
  /// Whether that owner has the lock, and that waiter is the first one.
  [[nodiscard]] bool would_pass(const std::string& name, const engine::OwnerId& owner,
                                const std::string& waiter, std::int64_t now_ms) const;
  /// The lock was not granted to whom it was to be passed: it is free, and others may have it.
  void not_passed(const std::string& name, std::int64_t now_ms, Publisher& publisher);
  /// pending.lua, if the node is well enough to write.
  MarkerReply mark_as_pending(const std::string& id, std::chrono::milliseconds kept,
                              std::int64_t now_ms);
  /// adopt.lua, likewise. Without an id of the pending node it is an operator's command.
  MarkerReply adopt(const Marker& marker, const std::string& promotion,
                    const std::optional<std::string>& pending, std::int64_t now_ms);
  /// What a script that does not say that it writes is refused with as it begins (loading, busy),
  /// or at its first command that writes.
  [[nodiscard]] std::optional<engine::Unavailable> refusal_to_write() const;

  void set_ailment(Ailment ailment) { ailment_ = ailment; }
  [[nodiscard]] Ailment ailment() const { return ailment_; }

  /// SCRIPT FLUSH, or a restart: calls by digest are answered NOSCRIPT.
  void forget_scripts() { scripts_ = {}; }
  /// SCRIPT LOAD of all.
  void load_scripts() { scripts_ = {true, true, true, true, true}; }
  void load_pass() { scripts_.pass = true; }
  /// SCRIPT LOAD of the one that runs commands of this kind.
  void load_script(const engine::Command& command) { loaded(command) = true; }
  /// FLUSHALL, or a restart without the data: the marker goes as well.
  void forget_everything();
  /// A restart with data from before the locks were granted.
  void forget_locks() {
    locks_.clear();
    forced_.clear();
    queues_.clear();
  }
  [[nodiscard]] const std::optional<Marker>& marker() const { return marker_; }
  [[nodiscard]] bool is_pending(std::int64_t now_ms) const {
    return !pending_.empty() && now_ms <= pending_end_ms_;
  }
  [[nodiscard]] const std::string& pending() const { return pending_; }
  /// The marker is written by somebody who does not wait: an operator, or another set to which this
  /// node belongs.
  void set_marker(Marker marker) { marker_ = std::move(marker); }

  /// Puts a key of another type where the lock would be.
  void put_foreign(const std::string& name) { locks_[name] = {{}, 0, std::nullopt, true}; }
  /// And takes it away again.
  void remove_foreign(const std::string& name) {
    const auto found = locks_.find(name);
    if (found != locks_.end() && found->second.foreign_type) locks_.erase(found);
  }
  void set_fence(std::uint32_t stripe, Fence fence) { fences_[stripe] = fence; }
  /// DEL by somebody's hand.
  void lose_fence(std::uint32_t stripe) { fences_.erase(stripe); }
  /// PERSIST by somebody's hand: the lock, which must be there, never expires.
  void persist(const std::string& name) { locks_.at(name).ends_ms.reset(); }
  [[nodiscard]] engine::Token fence(std::uint32_t stripe) const;

  /// The lock of that name, unless it is free or has expired by then.
  [[nodiscard]] const Lock* find(const std::string& name, std::int64_t now_ms) const;
  [[nodiscard]] bool holds(const std::string& name, const engine::OwnerId& owner,
                           std::int64_t now_ms) const;
  /// The owners who are turned away from that lock; null if there are none.
  [[nodiscard]] const ForcedOwners* find_forced(const std::string& name, std::int64_t now_ms) const;
  /// Who waits for it; null if nobody does.
  [[nodiscard]] const NodeQueues::Queue* find_queue(const std::string& name,
                                                    std::int64_t now_ms) const {
    return queues_.find(name, now_ms);
  }
  /// All that are there, some of them perhaps expired.
  [[nodiscard]] const std::map<std::string, Lock>& locks() const { return locks_; }

 private:
  struct Scripts {
    bool acquire = false;
    bool hold = false;
    bool release = false;
    bool force = false;
    bool pass = false;
  };

  engine::Reply acquire(const engine::AcquireCommand& command, std::int64_t now_ms,
                        const ScriptCaller& caller);
  engine::Reply take_free(const engine::AcquireCommand& command, std::int64_t now_ms,
                          const ScriptCaller& caller);
  engine::Reply hold(const engine::HoldCommand& command, std::int64_t now_ms);
  engine::Reply release(const engine::ReleaseCommand& command, std::int64_t now_ms,
                        const ScriptCaller& caller);
  engine::Reply force(const engine::ForceCommand& command, std::int64_t now_ms,
                      const ScriptCaller& caller);
  /// Of a script that does not say that it writes.
  [[nodiscard]] NodeQueues::Writes writes() const;
  engine::Reply grant(const engine::AcquireCommand& command, std::int64_t now_ms,
                      const ScriptCaller& caller);
  std::optional<engine::Unavailable> raise(std::uint32_t stripe, engine::Token floor,
                                           engine::Token& token);
  engine::Token raised_to(std::uint32_t stripe, engine::Token token);
  [[nodiscard]] std::optional<engine::Unavailable> refusal(const engine::Command& command) const;
  [[nodiscard]] bool turns_away(const std::string& name, const engine::OwnerId& owner,
                                std::int64_t now_ms) const;
  [[nodiscard]] bool& loaded(const engine::Command& command);

  std::map<std::string, Lock> locks_;
  std::map<std::string, ForcedOwners> forced_;
  NodeQueues queues_;
  std::map<std::uint32_t, Fence> fences_;
  Scripts scripts_;
  Ailment ailment_ = Ailment::none;
  std::optional<Marker> marker_;
  std::string pending_;
  std::int64_t pending_end_ms_ = 0;
};

using Ailment = NodeModel::Ailment;

}  // namespace redlock::simulation
