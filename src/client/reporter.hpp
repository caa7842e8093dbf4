// SPDX-License-Identifier: MIT
// Reports to the program, beside the answers to its calls: by its observer or, for events that
// would go unnoticed, on stderr. Puts names of nodes where the engine has numbers.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/observer.hpp>
#include <redlock/options.hpp>

#include "client/lease_state.hpp"
#include "engine/messages.hpp"
#include "engine/outputs.hpp"
#include "wire/node_address.hpp"

namespace redlock::client {

/// Called on the loop thread, unless a function says otherwise.
class Reporter {
 public:
  /// Both must outlive it.
  Reporter(const ClientOptions& options, const std::vector<wire::NodeAddress>& nodes)
      : options_(options), nodes_(nodes) {}

  [[nodiscard]] bool has_observer() const { return options_.observer != nullptr; }

  // From the thread that makes the client, and from the one that ends it.
  void nodes_added() const { each_node(&Observer::on_node_added); }
  void nodes_removed() const { each_node(&Observer::on_node_removed); }

  void on(const engine::AttemptDecided& output) const;
  void on(const engine::AttemptWaits& output) const;
  void on(const engine::WaitEnded& output) const;
  void on(const engine::HoldEnded& output) const;
  void on(const engine::NodeClockMoved& output) const;
  void node_moved(std::string_view from, std::string_view to) const;
  void node_up(engine::NodeIndex node, std::string_view warning) const;
  void node_down(engine::NodeIndex node, const engine::Unavailable& why) const;
  void reply(engine::NodeIndex node, const engine::Tag& tag, const engine::Reply& reply) const;

  void renewed(const Lease::State& lease, const engine::RenewalDecided& output) const;
  void lost(const Lease::State& lease, LossReason reason) const;
  /// Lost because the client ends, which the program knows.
  void closed(const Lease::State& lease) const;
  /// A code, if it failed.
  void call_ended(const std::string& name, std::optional<Errc> failure) const;
  /// The client has ended by itself, for this reason. An exception of the observer is ignored.
  void client_failed(const char* sentence, const CloseReport& report) const noexcept;
  void client_closed(const CloseReport& report) const;

 private:
  void each_node(void (Observer::*what)(std::string_view)) const;

  const ClientOptions& options_;
  const std::vector<wire::NodeAddress>& nodes_;
};

}  // namespace redlock::client
