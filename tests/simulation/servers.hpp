// SPDX-License-Identifier: MIT
// The nodes as processes: one server in front of each node's data, which runs, hangs, is gone or
// comes back, with or without what it had.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulation/network.hpp"
#include "simulation/node_server.hpp"
#include "simulation/random.hpp"
#include "simulation/scene.hpp"

namespace redlock::simulation {

/// What the markers of the world's nodes name.
inline constexpr const char* own_set = "own";

/// Under which markers name it.
inline std::string address_of(NodeIndex node) {
  return "redis://node-" + std::to_string(node) + ":6379";
}

class Servers final : NodeServerHost {
 public:
  Servers(Scene& scene, Network& network);

  void stop(NodeIndex node, bool unreachable);
  /// It was stopped, or is at once.
  void start(NodeIndex node);
  void hang(NodeIndex node) { ++states_[node].hung; }
  void go_on(NodeIndex node);
  void be_slow(NodeIndex node, Duration by) { states_[node].slow = by; }
  /// From now on there are forged wake-ups, and users may not do what the plan withholds.
  void begin_faults();
  // Events.
  void late_wake(const Event& event);
  void forged_wake();
  void withhold(const Event& event);

  /// From now on users may do everywhere what the plan withholds.
  void permit_all();

  [[nodiscard]] bool is_down(NodeIndex node) const { return states_[node].down; }
  /// When it was stopped last.
  [[nodiscard]] Instant stopped(NodeIndex node) const { return states_[node].stopped; }
  /// It replies soon, and does what it is asked.
  [[nodiscard]] bool is_well(NodeIndex node) const;

  /// All that it had is gone.
  void forget(NodeIndex node);
  /// It comes back with a state from before the newest grants.
  void forget_newest(NodeIndex node);
  /// A copy of what it has, to come back with.
  void take_snapshot(NodeIndex node) { states_[node].snapshot = scene_.nodes[node].data.keys; }
  void restore_snapshot(NodeIndex node);
  void forget_scripts(NodeIndex node) { servers_[node].forget_scripts(); }
  /// The address has come to lead to a node of another set: it has a marker, and none of the locks.
  void become_of_another_set(NodeIndex node);
  /// It becomes a replica of one that does not have its newest grants, and has what that one has.
  void demote(NodeIndex node);
  [[nodiscard]] bool demotion_is_known(NodeIndex node) const {
    return servers_[node].demotion_is_known();
  }
  /// It was a replica for a while, and is a master again.
  void promote(NodeIndex node);
  /// What markers say of leases from now on.
  struct Leases {
    std::chrono::milliseconds longest{};
    std::chrono::milliseconds announced{};
  };
  [[nodiscard]] Leases& leases() { return leases_; }
  /// These are the members of the set, in that epoch.
  void set_marker(NodeIndex node, const std::string& set, std::uint64_t epoch,
                  const std::vector<NodeIndex>& members);

  /// What it replies to a command of an operator, in RESP.
  [[nodiscard]] std::string ask(NodeIndex node, const std::vector<std::string>& words);

  /// What the clocks showed, in truth, when a server replied to TIME.
  struct TimeTold {
    Instant node_clock{};
    Instant client_clock{};
    Instant world{};
  };
  /// Of a stream: the oldest that was not taken.
  [[nodiscard]] TimeTold take_time_told(StreamId stream);
  /// For how long a server said that its clock is not to be trusted, if it was asked since the last
  /// call of this.
  [[nodiscard]] std::optional<Duration> take_note_told(StreamId stream) {
    const auto told = notes_told_.extract(stream);
    return told ? std::optional<Duration>(told.mapped()) : std::nullopt;
  }

  // For the network.
  enum class Process : std::uint8_t { runs, hangs, is_gone, is_out_of_reach };
  [[nodiscard]] Process process(NodeIndex node) const;
  /// How much longer its answers take.
  [[nodiscard]] Duration slow(NodeIndex node) const { return states_[node].slow; }
  void on_accepted(StreamId stream);
  /// Appends replies; false: it closes the stream behind them.
  [[nodiscard]] bool on_requests(StreamId stream, std::string_view bytes, std::string& replies);
  /// The stream ends at the node, whoever ended it.
  void on_ended(StreamId stream);

 private:
  [[nodiscard]] std::vector<NodeIndex> first_members() const;
  [[nodiscard]] NodeIndex node_of(StreamId stream) const {
    return stream == operators ? asked_ : network_.node_of(stream);
  }
  struct State {
    bool down = false;
    bool unreachable = false;  // down, and nobody says so
    Instant stopped = Instant::min();
    std::uint32_t hung = 0;
    Duration slow{};
    Keyspace snapshot;
  };

  void on_executed(StreamId stream, const ScriptRun& run) override;
  void on_push(StreamId stream, std::string_view bytes) override {
    network_.send_from_node(stream, bytes);
  }
  [[nodiscard]] std::string forged_text();
  std::uint32_t on_publish(StreamId stream, std::string_view channel,
                           std::string_view text) override;
  void on_marked(StreamId stream) override;
  void on_time_told(StreamId stream) override;
  void on_note_told(StreamId stream, std::chrono::milliseconds lasts) override {
    notes_told_[stream] = lasts;
  }
  void on_killed(StreamId stream) override { network_.close_at_node(stream); }
  void on_misread(StreamId stream, std::string_view why) override;
  [[nodiscard]] std::string new_run_id(NodeIndex node);

  Scene& scene_;
  Network& network_;
  std::vector<State> states_;
  Leases leases_;
  static constexpr StreamId operators = 0xffffffff;
  NodeIndex asked_ = 0;  // by an operator
  std::deque<NodeServer> servers_;
  std::vector<std::deque<TimeTold>> times_told_;  // by stream
  std::unordered_map<StreamId, std::chrono::milliseconds> notes_told_;
  std::uint64_t last_run_ = 0;
  struct Wake {
    std::string channel;
    std::string text;
  };
  std::vector<Wake> late_;
  Random wakes_;  // of its own, so that worlds without such faults stay as they are
};

}  // namespace redlock::simulation
