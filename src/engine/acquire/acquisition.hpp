// SPDX-License-Identifier: MIT
// One call that acquires, from its begin to its result: attempts, each with an owner of its own,
// until one is granted or the waiting time, the deadline or the caller ends the call.
//
// This is also the one machine of waiting. What a call does is one of the states below. A call that
// waits in order stays with its attempt while others have the lock: it is told when its turn comes,
// and asks the nodes then; it also asks when the holder's lease ends by itself, and now and then in
// any case, as no message is certain to arrive. Votes gather node by node. What does not become a
// quorum is given back soon, with the place kept. What the nodes that have not answered do when the
// call is over is for the Acquirer to clean up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "engine/acquire/attempt.hpp"
#include "engine/electorate.hpp"
#include "engine/outputs.hpp"
#include "engine/requests.hpp"
#include "engine/retry_schedule.hpp"

namespace redlock::engine {

class Acquisition {
 public:
  /// Calls of this client that wait for the same name are before it. No attempt; nothing of it is
  /// on a node, but that the acquire of the call before may name its place.
  struct Local {};
  /// Its next attempt waits for room in the client's window.
  struct AwaitingRoom {};
  /// The first of its client's line, without an attempt as yet: the acquire of the call before has
  /// stood it in some nodes' lines, or none. It asks by then, or when its turn comes. Also a call
  /// that barges, from when it moves up until it asks.
  struct Entering {
    Instant ask_by{};
  };
  /// Between two attempts, or before the first one. `keeps_places`: the attempt failed as
  /// contended, and its client stays in the lines; `gave_back`: nodes whose votes it gave back,
  /// also those that it was still to have.
  struct Pausing {
    Instant until{};
    bool keeps_places = false;
    NodeSet gave_back{};
  };
  /// An attempt asks nodes, settles the token, or has just failed. A node that is waited for may
  /// take so long that those which have refused would forget the waiter: it asks them again.
  struct Asking {
    GrantId attempt = 0;
    Instant ask_at = never;
  };
  /// No vote is pending or granted; silent nodes may still owe an answer. The attempt waits for its
  /// turn, until then at the latest.
  struct Idle {
    GrantId attempt = 0;
    Instant ask_at{};
  };
  /// A node has granted. More votes may come until `gather_until`: the release that made it grant
  /// may still be on its way to the others. When that time is over, the attempt ends
  /// as soon as no quorum is in reach.
  struct Gathering {
    GrantId attempt = 0;
    Instant gather_until{};
    Instant ends_at = never;  // gather_until, if the answers to come cannot make a quorum
    Instant ask_at = never;   // when it asks those that refused again, if too few can wake it
  };
  using State = std::variant<Local, AwaitingRoom, Entering, Pausing, Asking, Idle, Gathering>;

  /// How long a call is idle before it asks again, at most. A node that can wake it forgets it 2 to
  /// 2.5 times as long after it asked (line.lua).
  static constexpr Duration refresh = std::chrono::milliseconds(1'000);
  /// After its client's grant the next call waits this long, so that a release at once takes its
  /// question along.
  static constexpr Duration goes_with_a_release = std::chrono::milliseconds(1);

  Acquisition(const Electorate& electorate, RequestId request, AcquireRequest what, Instant now);

  [[nodiscard]] RequestId request() const { return request_; }
  [[nodiscard]] const AcquireRequest& what() const { return what_; }
  [[nodiscard]] Instant began() const { return began_; }
  /// Since when it waits among the calls of other clients: its begin, or the failure of its last
  /// grant that came too late. With its old place a call that cannot succeed would take each turn.
  [[nodiscard]] Instant in_line_since() const { return in_line_since_; }
  /// Whether it is one of those that stand in the nodes' lines, with attempts that wait.
  [[nodiscard]] bool waits_in_order() const {
    return what_.in_order && what_.wait > Duration::zero();
  }

  [[nodiscard]] const State& state() const { return state_; }
  template <typename T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(state_);
  }
  /// The attempt under way; 0 if there is none.
  [[nodiscard]] GrantId attempt() const;
  /// Nodes that may have it in their lines, which are told now that it leaves: it stands in none
  /// from now on.
  [[nodiscard]] NodeSet take_nodes_to_leave();

  // What happens to the call.

  void wait_locally() { state_ = Local{}; }
  void wait_for_room() { state_ = AwaitingRoom{}; }
  /// It takes part from now on, and asks at `ask_by` if nothing makes it ask before.
  void take_part(Instant ask_by) { state_ = Entering{ask_by}; }
  /// It is the first of its line now, but stands in no node's line and asks no earlier: messages
  /// that its turn has come are about the call before it.
  void pause(Instant until) { state_ = Pausing{until}; }
  /// The acquire of the call before has stood it in the line of this node.
  void entered(NodeIndex node, std::uint32_t place);
  /// These nodes have it in their lines, by a release or leave that is on its way; how many are
  /// before it is not known.
  void stands_at(NodeSet nodes);
  /// An attempt of the call before, of that grant, has a question under way at the node. Until it
  /// is answered, what the node says of a turn is about that attempt.
  void comes_behind(NodeIndex node, GrantId before) { nodes_[node].before = before; }
  /// This call comes behind the questions that the ended call came behind.
  void comes_behind_questions_of(const Acquisition& ended);
  /// Nodes that have such a question.
  [[nodiscard]] NodeSet behind_earlier() const;
  /// That question was answered. False if a later one is under way there.
  bool earlier_answered(NodeIndex node, GrantId grant);
  /// A quorum of nodes has it in its lines.
  [[nodiscard]] bool entered_by_quorum() const;
  void attempt_begins(GrantId attempt);
  /// These nodes have a question, which names that call as the next one of its client; 0: none.
  /// `blindly`: it was not known how far away they are.
  void asked(NodeSet nodes, RequestId next, bool blindly);
  [[nodiscard]] bool asked_blindly() const {
    return std::ranges::any_of(nodes_, &Node::asked_blindly);
  }
  [[nodiscard]] RequestId next_named(NodeIndex node) const { return nodes_[node].next; }
  [[nodiscard]] std::optional<std::uint32_t> place_of_next(NodeIndex node) const {
    return nodes_[node].next_place;
  }

  /// A node answered its acquire. True if the node is to be asked once more: its turn came there
  /// while the question was under way, which a refusal may not know.
  bool on_answer(Instant now, NodeIndex node, const Reply& reply);
  /// The votes of its attempt changed, or what they are worth.
  void on_votes(const Attempt& attempt);
  /// A node says that its turn has come, or comes after that time. True if it is to ask at once.
  bool on_wake(Instant now, NodeIndex node, Duration after, const Attempt* attempt,
               RandomSource& random);
  /// Whether nobody is before it on a quorum of the nodes, as they replied.
  [[nodiscard]] bool is_next() const;
  /// How many are before it on a quorum of the nodes, or of those that have it in their lines.
  [[nodiscard]] std::uint32_t place() const;
  /// Whether that is another place than was told last.
  bool moved_to(std::uint32_t place) {
    return std::exchange(told_place_, std::optional(place)) != place;
  }

  enum class Step : std::uint8_t { same, rests, asks };
  /// The state that follows from its attempt's, after each input to that. `rests`: it is idle from
  /// now on, `asks`: not any more.
  Step follow(Instant now, const Attempt& attempt, Duration round_trip, RandomSource& random);
  /// Whether the attempt, which cannot win by what is known, waits for nodes to answer otherwise.
  [[nodiscard]] bool may_wait(Instant now, const Attempt& attempt) const;
  /// It is idle, and asks again now, as it asked blindly: once, also where not all nodes are asked.
  void asks_with_the_distance_known(Instant now) {
    std::get<Idle>(state_).ask_at = now;
    for (Node& node : nodes_) node.asked_blindly = false;
  }
  /// Whether a node's message was about it, now or in an attempt before.
  [[nodiscard]] bool was_woken() const { return woken_; }
  /// Whether the attempt under way was idle at some time.
  [[nodiscard]] bool has_rested() const { return rested_; }

  /// For how long it waits to be told of its turn before it asks untold.
  [[nodiscard]] Duration waits_untold(RandomSource& random) const;

  /// What follows from a failed attempt: the final result, or nothing and another attempt at
  /// deadline().
  std::optional<Failed> on_failure(Instant now, const Attempt& attempt, RandomSource& random);
  /// The waiting time is over while an attempt is under way: that is decided as its answers come.
  void stop_waiting() { last_attempt_ = true; }
  [[nodiscard]] bool still_waits() const { return waits_in_order() && !last_attempt_; }

  [[nodiscard]] Instant deadline() const;
  /// The time given is over: that for waiting; the call's deadline once only the attempt under way
  /// is to be decided, or for the first attempt of all if that waits for room.
  [[nodiscard]] bool over(Instant now) const { return now >= ends_at(); }
  /// Whether its attempt asks all nodes now: by a timer, or because another waiter's turn is over.
  [[nodiscard]] bool ask_due(Instant now);
  /// The result of a call whose time is over; the attempt under way is null if there is none.
  [[nodiscard]] Failed time_is_over(const Attempt* under_way) const;
  [[nodiscard]] bool has_failed() const { return schedule_.has_failed(); }
  /// It has no attempt, and may begin one at once when its client gives the lock back.
  [[nodiscard]] bool comes_with_a_release() const {
    const auto* const pausing = std::get_if<Pausing>(&state_);
    return is<Entering>() || (pausing != nullptr && pausing->keeps_places);
  }
  /// It pauses because too little of its lease was left: another call may have more.
  [[nodiscard]] bool pauses_as_too_late() const {
    const auto* const pausing = std::get_if<Pausing>(&state_);
    return pausing != nullptr && !pausing->keeps_places && schedule_.was_too_late();
  }
  /// Until then it pauses after its last failure, if it stands in no line meanwhile.
  [[nodiscard]] Instant retry_at() const {
    return schedule_.has_failed() ? schedule_.retry_at() : Instant::min();
  }

 private:
  /// What is known of one node's line, and which questions are under way there.
  struct Node {
    Instant free_at = never;  // the holder's lease ends by itself, or the turn of another waiter
    Instant wake_at = never;  // the turn of the waiter before this one is over
    RequestId next = 0;
    std::optional<std::uint32_t> next_place = {};
    // Of the client there, if it is in the line; 0 also where the node told none.
    std::optional<std::uint32_t> place = {};
    bool asked_blindly = false;  // the last question
    bool asked = false;          // a question is under way, but for one sent again with its script
    bool stands = false;         // an earlier one may have stood the client in the line
    bool woken = false;          // while a question was under way
    GrantId before = 0;          // of an earlier call, whose question is under way there; 0: none

    [[nodiscard]] bool is_in_line() const { return place.has_value(); }
    /// Of what the node replied.
    void forget() { *this = {.asked = asked, .stands = stands, .before = before}; }
  };

  [[nodiscard]] Instant ends_at() const;
  /// A quorum of nodes can wake this client.
  [[nodiscard]] bool can_be_woken() const;
  [[nodiscard]] Instant ask_again_at(Instant now, RandomSource& random) const;

  const Electorate* electorate_;
  RequestId request_;
  AcquireRequest what_;
  RetrySchedule schedule_;
  Instant began_;
  Instant in_line_since_;
  State state_ = Entering{};
  std::vector<Node> nodes_;  // of one in line
  std::optional<std::uint32_t> told_place_;
  std::uint32_t rounds_in_vain_ = 0;
  bool attempted_ = false;
  bool rested_ = false;
  bool woken_ = false;
  bool last_attempt_ = false;
};

}  // namespace redlock::engine
