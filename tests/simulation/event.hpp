// SPDX-License-Identifier: MIT
// The world's agenda. Time jumps from one entry to the next; entries of one moment keep the order
// in which they were made.
#pragma once

#include <cstdint>
#include <queue>

#include "engine/types.hpp"

namespace redlock::simulation {

struct Event {
  enum class What : std::uint8_t {
    at_node,          ///< a segment of stream a reaches its node
    at_client,        ///< a segment of stream a reaches its client
    writable,         ///< the client of stream a may have room to write again
    connect_timeout,  ///< stream a should be connected by now
    timer,            ///< the driver of client a wants to be called
    resume,           ///< paused client a goes on
    revive,           ///< crashed client a starts again
    user,             ///< user a does the next thing; c: which one
    owner,            ///< a thread of owner a does; c: likewise
    next_fault,       ///< something goes wrong, as it does all the time
    fault,            ///< something goes wrong once more
    repair,           ///< fault number a is over
    validity_ends,    ///< of grant c of client life a
    promotion,        ///< replica a becomes a master (b: it is one), or has room for locks again
    flush_again,      ///< a node that has just been marked loses everything once more
    many_forget,      ///< a quorum of nodes forgets the newest grants; a: also if one just did
    late_wake,        ///< a message that woke somebody, number b of node a, comes after all
    forged_wake,      ///< somebody publishes what no node has
    withheld,         ///< node a: users may not do there what the plan withholds (b: they may)
    replacement,      ///< an operator who replaces members does the next thing
    parted,           ///< clients lose the way to other servers than before
    tidy,             ///< look at what is left on the nodes
  };
  engine::Instant when{};
  std::uint64_t order = 0;
  What what{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint64_t c = 0;
  engine::Instant until{};  // of validity_ends

  friend bool operator<(const Event& x, const Event& y) {
    return x.when != y.when ? x.when > y.when : x.order > y.order;
  }
};

class Agenda {
 public:
  void add(Event event) {
    if (event.when == engine::never) return;
    event.order = ++last_;
    events_.push(event);
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] engine::Instant next() const { return events_.top().when; }
  Event pop() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  std::priority_queue<Event> events_;
  std::uint64_t last_ = 0;
};

}  // namespace redlock::simulation
