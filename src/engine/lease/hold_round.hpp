// SPDX-License-Identifier: MIT
// One round of hold over all nodes: counts who confirmed, who denied and who did not answer. The
// watchdog's renewals, a caller's extend or re-entry, and what tells the nodes of a lower count are
// the same round; only a caller's has a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/electorate.hpp"
#include "engine/outputs.hpp"
#include "engine/quorum.hpp"
#include "engine/types.hpp"

namespace redlock::engine {

class HoldRound {
 public:
  enum class Purpose : std::uint8_t { renew, extend, enter, enter_and_renew, tell_count };

  /// The electorate must outlive the round.
  HoldRound(std::uint32_t number, const Electorate& electorate, Purpose purpose, RequestId request,
            std::chrono::milliseconds lease, Instant deadline)
      : number_(number),
        electorate_(&electorate),
        nodes_(electorate.nodes()),
        request_(request),
        lease_(lease),
        deadline_(deadline),
        purpose_(purpose) {}

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] Purpose purpose() const { return purpose_; }
  /// Whether it asks for one more level.
  [[nodiscard]] bool enters() const {
    return purpose_ == Purpose::enter || purpose_ == Purpose::enter_and_renew;
  }
  [[nodiscard]] bool entering() const { return enters() && !announced_; }
  /// 0 if no caller waits for it.
  [[nodiscard]] RequestId request() const { return request_; }
  [[nodiscard]] std::chrono::milliseconds lease() const { return lease_; }

  void held(NodeIndex node) { yes_.insert(node); }
  void denied(NodeIndex node, bool free) {
    no_.insert(node);
    if (free) free_.insert(node);
  }
  void unavailable(NodeIndex node, const Unavailable& why);
  /// It lost its place in the set: if it had confirmed, that counts no more.
  void node_removed(NodeIndex node);
  /// It has the lock, and a fence below the token that is to be taken up: no confirmation.
  void below_token(NodeIndex node, Token fence);
  /// Whether so many fences are below it that no quorum can ever have settled that token.
  [[nodiscard]] bool refutes_token() const;
  /// Every node that has not answered is unavailable: those.
  NodeSet time_out();

  /// A quorum confirmed.
  [[nodiscard]] bool won() const { return electorate_->won(tally()); }
  /// Every node has answered, or was given up.
  [[nodiscard]] bool complete() const { return tally().pending() == NodeSet(); }
  /// Won or lost for certain, whatever is still to come.
  [[nodiscard]] bool decided() const { return won() || electorate_->out_of_reach(tally()); }
  [[nodiscard]] Instant deadline() const { return complete() ? never : deadline_; }

  [[nodiscard]] bool some_free() const { return !(free_ == NodeSet{}); }
  /// Nodes that said free and were not yet taken for healing.
  NodeSet take_free();
  /// True once, when the round is decided and its result is to be told.
  bool announce();
  [[nodiscard]] bool announced() const { return announced_; }
  /// The same for a round that ends undecided: true unless its result was told.
  bool announce_end() { return !std::exchange(announced_, true); }
  /// A voting node denied the lease: what this round has confirmed may be older than that.
  void on_denial() { denied_since_ = true; }
  [[nodiscard]] bool denied_since() const { return denied_since_; }

  [[nodiscard]] std::vector<Ballot> ballots() const;

 private:
  [[nodiscard]] Tally tally() const { return {nodes_, yes_, no_, unavailable_}; }

  std::uint32_t number_;
  const Electorate* electorate_;
  NodeSet nodes_;
  RequestId request_;
  std::chrono::milliseconds lease_;
  Instant deadline_;
  Purpose purpose_;
  bool announced_ = false;
  bool denied_since_ = false;
  NodeSet yes_;
  NodeSet no_;
  NodeSet free_;
  NodeSet unavailable_;
  NodeSet below_token_;
  std::vector<std::pair<NodeIndex, Unavailable>> reasons_;  // of a caller's round only
};

/// The rounds of one lease that are under way. Most leases are between two rounds, and programs
/// hold many: what has none is one pointer.
class HoldRounds {
 public:
  template <typename... Arguments>
  HoldRound& emplace_back(Arguments&&... arguments) {
    if (rounds_ == nullptr) rounds_ = std::make_unique<std::vector<HoldRound>>();
    return rounds_->emplace_back(std::forward<Arguments>(arguments)...);
  }
  void erase_complete() {
    if (rounds_ == nullptr) return;
    std::erase_if(*rounds_, [](const HoldRound& round) { return round.complete(); });
    if (rounds_->empty()) rounds_ = nullptr;
  }
  void clear() { rounds_ = nullptr; }

  [[nodiscard]] bool empty() const { return rounds_ == nullptr; }
  [[nodiscard]] HoldRound& back() { return rounds_->back(); }
  [[nodiscard]] HoldRound* begin() { return rounds_ == nullptr ? nullptr : rounds_->data(); }
  [[nodiscard]] HoldRound* end() { return begin() + size(); }
  [[nodiscard]] const HoldRound* begin() const {
    return rounds_ == nullptr ? nullptr : rounds_->data();
  }
  [[nodiscard]] const HoldRound* end() const { return begin() + size(); }

 private:
  [[nodiscard]] std::size_t size() const { return rounds_ == nullptr ? 0 : rounds_->size(); }

  std::unique_ptr<std::vector<HoldRound>> rounds_;
};

}  // namespace redlock::engine
