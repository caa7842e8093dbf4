// SPDX-License-Identifier: MIT
// A longer longest lease, while locks are held. All members are told of it before one client may
// take such a lease: who waits for what a node has forgotten then waits for the longer one. See
// docs/safety.md, A6.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>

#include "admin/adopting.hpp"
#include "admin/marker.hpp"
#include "client/client_impl.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "wire/info_text.hpp"
#include "wire/node_address.hpp"

namespace redlock {
namespace admin {
namespace {

using std::chrono::milliseconds;

constexpr auto* not_all_announced =
    "not every member knows of the longer leases yet, so that no client may take one; give the "
    "same command again";

/// A server with "appendfsync everysec" may lose what it was told so long ago, and a little more:
/// one that comes back does not forget both epochs.
constexpr std::chrono::seconds until_written{3};

std::string in_ms(milliseconds duration) {
  return std::to_string(duration.count()) + " ms";
}

class Raise final : Adopting {
 public:
  Raise(NodeQuery& query, milliseconds max_lease) : Adopting(query, {}), max_lease_(max_lease) {}

  Result<std::vector<NodeAdoption>> run() {
    if (auto done = look(); !done) return tl::make_unexpected(done.error());
    auto now = shown();
    if (!now) return tl::make_unexpected(now.error());
    if (auto done = may_be(*now); !done) return tl::make_unexpected(done.error());
    auto done = now->max_lease == max_lease_ ? finish(std::move(*now)) : begin(std::move(*now));
    if (!done) return tl::make_unexpected(done.error());
    return std::move(adoptions_);
  }

 private:
  /// Two epochs: the lease is announced to all; then it is in force.
  Result<void> begin(SetConfiguration its) {
    if (auto all = all_take_part(its); !all) return all;
    if (its.announced != max_lease_) {
      if (auto enough = enough_would_vote(); !enough) return enough;
    }
    its.announced = max_lease_;
    its.epoch = epoch_of(its);
    const auto commands = as_members(its);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node)) return refused(nodes_[node].label + ": " + adoptions_[node].detail);
    }
    const auto would = all_would(its);
    if (!would) return tl::make_unexpected(would.error());
    if (*would) {
      if (auto done = tell_in_turn(commands, all_nodes(), its); !done) return done;
    }
    if (told() < nodes_.size()) return not_told(not_all_announced);
    admin::NodeQuery::pause(until_written);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      markers_[node]->epoch = std::to_string(its.epoch);
      markers_[node]->max_lease_ms = wire::NodeMarker::max_lease_text(its.max_lease, its.announced);
    }
    its.max_lease = std::exchange(its.announced, milliseconds::zero());
    its.epoch = next_epoch();
    return put_in_force(its);
  }

  /// All have been told, or it would be in force nowhere. Those who have not are back with older
  /// data, or were told by nobody that it is in force; others may be dead.
  Result<void> finish(SetConfiguration its) {
    std::size_t knowing = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool counts = accepted(node) && is_member(node);
      knowing += counts && markers_[node]->configuration().longest_lease() == max_lease_ ? 1 : 0;
    }
    if (knowing < enough_to_know(its.members.size())) {
      return refused(
          "too few members that answer know of leases of up to " + in_ms(max_lease_) +
          "; start the others, or adopt those that lost their data, and give the same command "
          "again");
    }
    its.epoch = epoch_of(its);
    return put_in_force(its);
  }

  Result<void> put_in_force(const SetConfiguration& its) {
    const auto commands = as_members(its);
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!commands[node].empty()) adoptions_[node].adoption = Adoption::unconfirmed;
    }
    const auto would = all_would(its);
    if (!would) return tl::make_unexpected(would.error());
    if (!*would) return not_told(none_told);
    if (auto done = tell_in_turn(commands, all_nodes(), its); !done) return done;
    return not_told(told_in_turn);
  }

  Result<void> not_told(const char* why) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (adoptions_[node].adoption == Adoption::already_there) continue;
      const bool is_empty = accepted(node) && !is_member(node);
      unconfirmed(node, is_empty ? "it has no marker; run redlock adopt --replaced NODE if it lost "
                                   "its data and its old leases are over"
                                 : why);
    }
    return {};
  }

  [[nodiscard]] std::vector<std::size_t> all_nodes() const {
    std::vector<std::size_t> all(nodes_.size());
    for (std::size_t node = 0; node < all.size(); ++node) all[node] = node;
    return all;
  }

  /// The members that all name who answer, and the longest leases that any of them shows.
  Result<SetConfiguration> shown() const {
    SetConfiguration its;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!accepted(node) || !is_member(node)) continue;
      const auto here = markers_[node]->configuration();
      if (its.set.empty()) its = {here.set, here.epoch, here.members};
      if (here.set != its.set) {
        return refused(nodes_[node].label + ": " + client::another_set(here.set, its.set));
      }
      if (here.members == its.members) continue;
      return refused(missed_change().value_or(nodes_[node].label + ": " + other_change + way_out));
    }
    if (its.set.empty()) return refused("no node that answers is a member of a set");
    keep_longest_leases(its);
    return its;
  }

  Result<void> may_be(const SetConfiguration& its) const {
    std::string why;
    if (max_lease_ < its.max_lease) {
      why = "the longest lease of the set is " + in_ms(its.max_lease) +
            ", and is not made shorter: leases of that length may be held";
    } else if (max_lease_ < its.announced) {
      why = "a longest lease of " + in_ms(its.announced) +
            " was announced, and is not taken back; give that, or a longer one";
    }
    if (why.empty()) return {};
    return tl::make_unexpected(Error{Errc::invalid_argument, why, {}});
  }

  Result<void> all_take_part(const SetConfiguration& its) const {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const std::string& label = nodes_[node].label;
      if (!accepted(node)) return refused(label + ": " + adoptions_[node].detail + all_who_stay);
      if (!is_member(node)) return refused(label + without_marker);
      if (!its.has(markers_[node]->id)) return refused(label + ": " + other_change);
    }
    return nodes_.size() == its.members.size() ? Result<void>() : refused(other_change);
  }

  /// A node that keeps its data in memory alone waits after a restart until all leases are over:
  /// it would begin to wait once more for longer ones.
  Result<void> enough_would_vote() {
    const std::vector<QueryCommand> questions{
        {"INFO"}, {"CONFIG", "GET", "appendonly"}, {"CONFIG", "GET", "appendfsync"}};
    const auto answers = query_.ask_all(questions, query_.patience());
    if (!answers) return tl::make_unexpected(answers.error());
    const auto needed = engine::rules::over_everywhere(max_lease_, set_.drift_factor);
    std::vector<engine::Duration> left;
    for (const NodeAnswers& node : *answers) {
      const auto setting = [&](std::size_t at) {
        const auto pair = texts_of(node.answers[at]);
        return pair.size() == 2 ? pair[1] : std::string();
      };
      const std::string info = text_of(node.answers[0]).value_or("");
      const engine::Duration up = wire::InfoText(info).uptime();
      const bool durable = setting(1) == "yes" && setting(2) == "always";
      left.push_back(durable ? engine::Duration::zero() : needed - up);
    }
    std::ranges::sort(left);
    const auto wait = left[engine::quorum_of(static_cast<std::uint32_t>(left.size())) - 1];
    if (wait <= engine::Duration::zero()) return {};
    return refused(
        "too few members would grant locks: those that do not keep their data (appendfsync "
        "always) have not run for as long as leases may last then; give the same command in " +
        std::to_string(std::chrono::ceil<std::chrono::seconds>(wait).count()) + " s");
  }

  /// That of a node which shows the very same, as the latest of all; otherwise a new one.
  [[nodiscard]] std::uint64_t epoch_of(SetConfiguration its) const {
    its.epoch = last_epoch();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool counts = accepted(node) && is_member(node);
      if (counts && markers_[node]->configuration() == its) return its.epoch;
    }
    return next_epoch();
  }

  const milliseconds max_lease_;
};

}  // namespace
}  // namespace admin

Result<std::vector<NodeAdoption>> Admin::set_max_lease(std::chrono::milliseconds max_lease) const {
  if (max_lease <= max_lease.zero() || max_lease > engine::longest_max_lease) {
    return tl::make_unexpected(
        Error{Errc::invalid_argument, "the longest lease is to be between 1 ms and a year", {}});
  }
  const auto nodes = admin::members_to_change(*client_);
  if (!nodes) return tl::make_unexpected(nodes.error());
  return admin::change_among(*client_, *nodes, nodes->front(), [&](admin::NodeQuery& query) {
    return admin::Raise(query, max_lease).run();
  });
}

}  // namespace redlock
