// SPDX-License-Identifier: MIT
//
// The network between a client and a real node, as who judges the client wants it: passing, slow,
// unsteady, dripping, swallowing requests, swallowing replies, cutting them off, adding rubbish,
// resetting or refusing every connection. What is held is not lost: it goes on as soon as the proxy
// passes again, also when the client has given up meanwhile, because a network may deliver late
// what was sent long ago.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cluster/poll_thread.hpp"
#include "cluster/sockets.hpp"

namespace redlock::cluster {

class Relay {
 public:
  /// A new connection to the node; empty if there is none to be had.
  using Connect = std::function<UniqueFd()>;

  /// Accepts connections here, and passes what they carry to the node.
  Relay(UniqueFd listener, Connect connect);

  /// Everything goes through at once, what was held first.
  void pass();

  /// Connections are accepted and bytes taken, but nothing goes on: in both directions, only
  /// towards the node, or only back from it.
  void hold();
  void hold_requests();
  void hold_replies();
  /// The same in both directions, as a node does that hangs for long: it forgets the connections
  /// that their clients give up, so that they do not become more and more, here and at the node.
  void hang();

  /// What the connections that exist now carry towards the node waits here, even when their clients
  /// have ended them, until deliver_late(); new connections are not concerned.
  void strand();
  void deliver_late();
  /// Until the node has answered on each of those, or has closed it.
  bool await_late();

  /// What arrives from now on is passed on this much later, in each direction, and each piece by a
  /// random part of `jitter` more; none overtakes another.
  void delay(std::chrono::microseconds time, std::chrono::microseconds jitter = {});

  /// Replies go back byte by byte, with this pause behind each.
  void drip(std::chrono::milliseconds pause);

  /// Each connection, each new one too, brings so many more bytes of replies and then ends.
  void cut_replies(std::size_t after);

  /// These bytes go back before whatever else comes from the node, on each connection that exists
  /// and each new one.
  void spoil_replies(const std::string& rubbish);

  /// Resets every connection, and each new one, until it passes again.
  void refuse();

  /// Resets every connection on both sides and forgets what was held. Returns when it is done.
  void reset_all();

  /// Where it accepts connections.
  [[nodiscard]] const UniqueFd& listener() const { return listener_; }

  /// Connections accepted so far, the bytes that clients have sent through all of them, and how
  /// many clients have ended theirs, as far as it has received it.
  [[nodiscard]] std::size_t accepted() const;
  [[nodiscard]] std::size_t request_bytes() const;
  [[nodiscard]] std::size_t given_up() const;

  /// From now on all that arrives, from both sides, is kept to be looked at.
  void record();
  [[nodiscard]] std::string recorded() const;

  /// Wait until it has happened; false when it has not after half a minute.
  bool await_accepted(std::size_t count);
  bool await_request_bytes(std::size_t count);
  bool await_given_up(std::size_t count);

 private:
  struct RelayedBytes {
    std::string bytes;
    PollThread::TimePoint due;
  };
  // One direction of one connection: from where, what is under way, and whether the source has
  // ended.
  struct Direction {
    std::deque<RelayedBytes> under_way = {};
    Received::End end = Received::End::open;
    PollThread::TimePoint not_before = {};  // the next byte, while they drip
    std::optional<std::size_t> left = {};   // so many bytes more, and then it is cut

    [[nodiscard]] PollThread::TimePoint due() const {
      return std::max(under_way.front().due, not_before);
    }
    [[nodiscard]] bool is_cut() const { return left && *left == 0; }
  };
  struct Relayed {
    UniqueFd client;
    UniqueFd node;
    Direction requests = {};
    Direction replies = {};
    bool doomed = false;
    bool stranded = false;  // is, or was: its client's end is of no consequence
  };

  std::optional<PollThread::TimePoint> prepare(std::vector<pollfd>& polled) const;
  void perform(const std::vector<pollfd>& polled);
  bool serve(Relayed& connection, const pollfd& client, const pollfd& node);
  std::size_t take(const UniqueFd& source, Direction& stream);
  bool deliver(Direction& stream, const UniqueFd& target, std::chrono::milliseconds pause) const;
  void accept_all();
  [[nodiscard]] bool holds_requests(const Relayed& connection) const;

  UniqueFd listener_;
  Connect connect_;
  bool refuses_ = false;
  bool requests_held_ = false;
  bool replies_held_ = false;
  bool forgets_given_up_ = false;
  bool stranded_held_ = false;
  std::size_t late_ = 0;  // stranded connections that the node has neither answered nor closed
  std::chrono::microseconds delay_{0};
  std::chrono::microseconds jitter_{0};
  std::chrono::milliseconds pause_{0};  // behind each byte of a reply
  std::optional<std::size_t> cut_after_;
  std::string rubbish_;
  bool records_ = false;
  std::string recorded_;
  std::minstd_rand random_;
  std::list<Relayed> connections_;
  std::size_t accepted_ = 0;
  std::size_t request_bytes_ = 0;
  std::size_t given_up_ = 0;
  PollThread thread_;  // last: it starts when all else exists and ends before anything is gone
};

}  // namespace redlock::cluster
