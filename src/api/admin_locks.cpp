// SPDX-License-Identifier: MIT
// Reading locks: of each node what it says, and what a quorum says together. Plain reads, so the
// commands for one lock are not one snapshot even of one node; good enough to look at.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <redlock/admin.hpp>

#include "api/admin_ask.hpp"
#include "api/client_impl.hpp"
#include "api/options_check.hpp"
#include "io/key_layout.hpp"

namespace redlock {
namespace {

using api::Command;
using api::NodeAnswers;
using std::chrono::milliseconds;

constexpr std::size_t keys_per_scan = 1000;

std::vector<Command> questions_about(const std::string& name) {
  const auto lock = io::KeyLayout::lock(name);
  return {{"HGETALL", lock}, {"PTTL", lock}, {"GET", io::KeyLayout::fence(name)}};
}

bool is_wrong_type(const NodeTrouble& trouble) {
  return trouble.detail.starts_with("WRONGTYPE");
}

std::optional<milliseconds> remaining_of(const io::Answer& pttl) {
  const auto ms = api::number_of(pttl);
  if (!ms || *ms < 0) return std::nullopt;
  return milliseconds(*ms);
}

// `answers` begins with those to HGETALL and PTTL.
NodeLock read_lock(const io::NodeAddress& node, const io::Answer* answers) {
  NodeLock lock;
  lock.node = node.label;
  lock.trouble = api::trouble_of(answers[0], node);
  if (is_wrong_type(lock.trouble)) {
    lock.foreign_type = true;
    lock.trouble = {};
  }
  for (const auto& [owner, count] : api::fields_of(answers[0])) {
    const auto number = api::number_of(io::Value{count});
    lock.holders.push_back(
        {owner, static_cast<std::uint64_t>(std::max<std::int64_t>(number.value_or(0), 0))});
  }
  lock.remaining = remaining_of(answers[1]);
  return lock;
}

NodeLock read_lock_and_fence(const io::NodeAddress& node, const NodeAnswers& answers) {
  auto lock = read_lock(node, answers.answers.data());
  if (const auto fence = api::number_of(answers.answers[2]); fence && *fence >= 0) {
    lock.fence = static_cast<std::uint64_t>(*fence);
  }
  return lock;
}

/// The owner that the most nodes name, and how many do. A node with several holders names none.
std::pair<std::string, std::uint32_t> leading_owner(const std::vector<NodeLock>& nodes) {
  std::map<std::string, std::uint32_t> counts;
  for (const auto& node : nodes) {
    if (node.holders.size() == 1) ++counts[node.holders[0].owner];
  }
  std::pair<std::string, std::uint32_t> leader;
  for (const auto& [owner, count] : counts) {
    if (count > leader.second) leader = {owner, count};
  }
  return leader;
}

void judge(LockReport& report) {
  std::tie(report.owner, report.nodes_of_owner) = leading_owner(report.nodes);
  std::uint32_t free = 0;
  std::uint32_t silent = 0;
  for (const auto& node : report.nodes) {
    if (node.free()) ++free;
    if (!node.answered()) ++silent;
  }
  if (report.nodes_of_owner >= report.quorum) {
    report.verdict = Verdict::held;
  } else if (free >= report.quorum) {
    report.verdict = Verdict::free;
  } else if (report.nodes_of_owner + silent >= report.quorum || free + silent >= report.quorum) {
    report.verdict = Verdict::unknown;
  } else {
    report.verdict = Verdict::no_majority;
  }
}

/// Walks over the keys of every node, all nodes in step, until each has been seen whole or has
/// named more locks than anybody wants.
class Walk {
 public:
  Walk(api::Panel& panel, const std::string& pattern, std::size_t limit)
      : panel_(panel),
        pattern_(io::KeyLayout::lock(pattern)),
        limit_(limit),
        cursors_(panel.nodes().size(), "0"),
        names_(panel.nodes().size()) {
    for (const auto& node : panel.nodes()) nodes_.push_back({node.label, {}});
  }

  Result<void> run() {
    for (bool more = true; more;) {
      std::vector<std::vector<Command>> commands(cursors_.size());
      for (std::size_t i = 0; i < cursors_.size(); ++i) {
        if (cursors_[i].empty()) continue;
        commands[i] = {
            {"SCAN", cursors_[i], "MATCH", pattern_, "COUNT", std::to_string(keys_per_scan)}};
      }
      const auto answers = panel_.ask(std::move(commands), panel_.options().node_timeout);
      if (!answers) return tl::make_unexpected(answers.error());
      more = false;
      for (std::size_t i = 0; i < cursors_.size(); ++i) {
        if (!cursors_[i].empty()) more = take(i, (*answers)[i].answers[0]) || more;
      }
    }
    return {};
  }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& of_node : names_) all.insert(of_node.begin(), of_node.end());
    return all;
  }
  [[nodiscard]] const std::vector<LockList::Node>& nodes() const { return nodes_; }

 private:
  // Whether the node has more to say.
  bool take(std::size_t node, const io::Answer& answer) {
    nodes_[node].trouble = api::trouble_of(answer, panel_.nodes()[node]);
    const auto* parts = answer ? std::get_if<std::vector<io::Value>>(&answer->data) : nullptr;
    const auto cursor = parts != nullptr && parts->size() == 2
                            ? api::text_of((*parts)[0]).value_or("0")
                            : std::string("0");
    if (parts != nullptr && parts->size() == 2) {
      for (const auto& key : api::texts_of((*parts)[1])) note(node, key);
    }
    const bool more = cursor != "0" && names_[node].size() <= limit_;
    cursors_[node] = more ? cursor : "";
    return more;
  }

  void note(std::size_t node, const std::string& key) {
    constexpr auto prefix = io::KeyLayout::lock_prefix;
    constexpr auto suffix = io::KeyLayout::lock_suffix;
    if (!key.starts_with(prefix) || !key.ends_with(suffix)) return;
    auto name = key.substr(prefix.size());
    name.resize(name.size() - suffix.size());
    // There may be keys that only look like a lock's.
    if (api::check_name(name)) names_[node].insert(std::move(name));
  }

  api::Panel& panel_;
  std::string pattern_;
  std::size_t limit_;
  std::vector<std::string> cursors_;  ///< empty: seen whole
  std::vector<std::set<std::string>> names_;
  std::vector<LockList::Node> nodes_;
};

ListedLock summary(const std::string& name, const std::vector<NodeLock>& nodes) {
  ListedLock listed;
  listed.name = name;
  std::tie(listed.owner, listed.nodes_of_owner) = leading_owner(nodes);
  for (const auto& node : nodes) {
    if (!node.remaining || node.holders.empty() || node.holders[0].owner != listed.owner) continue;
    if (!listed.remaining || *node.remaining < *listed.remaining) listed.remaining = node.remaining;
  }
  return listed;
}

/// Asks every node about every name: a scan alone would count a lock too low where it came or went
/// between the scans.
Result<void> look_up(api::Panel& panel, const std::set<std::string>& names, LockList& list) {
  std::vector<Command> commands;
  for (const auto& name : names) {
    auto questions = questions_about(name);
    commands.push_back(std::move(questions[0]));
    commands.push_back(std::move(questions[1]));
  }
  const auto answers = panel.ask_all(commands);
  if (!answers) return tl::make_unexpected(answers.error());
  std::size_t at = 0;
  for (const auto& name : names) {
    std::vector<NodeLock> nodes;
    bool gone = true;
    for (std::size_t i = 0; i < panel.nodes().size(); ++i) {
      nodes.push_back(read_lock(panel.nodes()[i], &(*answers)[i].answers[at]));
      gone = gone && nodes.back().holders.empty() && !nodes.back().foreign_type;
    }
    at += 2;
    if (!gone) list.locks.push_back(summary(name, nodes));
  }
  return {};
}

}  // namespace

Result<LockReport> Admin::inspect(std::string_view name,
                                  std::optional<milliseconds> timeout) const {
  if (auto good = api::check_name(name); !good) return tl::make_unexpected(good.error());
  auto panel = api::Panel::of(*client_->impl());
  LockReport report;
  report.name = std::string(name);
  report.quorum = panel.quorum();
  const auto answers = panel.ask(std::vector(panel.nodes().size(), questions_about(report.name)),
                                 timeout.value_or(panel.options().node_timeout));
  if (!answers) return tl::make_unexpected(answers.error());
  for (std::size_t i = 0; i < panel.nodes().size(); ++i) {
    report.nodes.push_back(read_lock_and_fence(panel.nodes()[i], (*answers)[i]));
  }
  judge(report);
  return report;
}

Result<LockList> Admin::list(std::string_view pattern, std::size_t limit) const {
  auto panel = api::Panel::of(*client_->impl());
  Walk walk(panel, std::string(pattern), limit);
  if (auto walked = walk.run(); !walked) return tl::make_unexpected(walked.error());
  LockList list;
  list.quorum = panel.quorum();
  list.nodes = walk.nodes();
  auto names = walk.names();
  list.truncated = names.size() > limit;
  while (names.size() > limit) names.erase(std::prev(names.end()));
  if (auto looked = look_up(panel, names, list); !looked) {
    return tl::make_unexpected(looked.error());
  }
  return list;
}

}  // namespace redlock
