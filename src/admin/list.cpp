// SPDX-License-Identifier: MIT
// Which locks there are: first collects the names from the nodes, then asks every node about every
// name. In batches, because all questions of a batch have to be answered within one node timeout.
#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <redlock/admin.hpp>

#include "admin/key_walk.hpp"
#include "admin/locks.hpp"
#include "admin/node_query.hpp"
#include "client/client_impl.hpp"
#include "client/options_check.hpp"
#include "wire/key_layout.hpp"

namespace redlock {
namespace {

using admin::NodeAnswers;
using admin::QueryCommand;

constexpr std::size_t names_per_round = 200;

/// The names of locks that each node has: of a node with more of them than the limit, some.
class Names {
 public:
  explicit Names(std::size_t nodes) : names_(nodes) {}

  /// Returns how many names of this node are known.
  std::size_t note(std::size_t node, const std::string& key) {
    constexpr auto prefix = wire::redlock_layout.lock_prefix;
    if (key.starts_with(prefix)) note_name(node, key.substr(prefix.size()));
    return names_[node].size();
  }

  [[nodiscard]] std::set<std::string> all() const {
    std::set<std::string> all;
    for (const auto& of_node : names_) all.insert(of_node.begin(), of_node.end());
    return all;
  }
  /// Whether this node has named this lock.
  [[nodiscard]] bool named(std::size_t node, const std::string& name) const {
    return names_[node].contains(name);
  }

 private:
  void note_name(std::size_t node, std::string name) {
    if (!name.starts_with("{") || !name.ends_with("}") || name.size() < 2) return;
    name = name.substr(1, name.size() - 2);
    // There may be keys that only look like a lock's.
    if (client::check_name(name)) names_[node].insert(std::move(name));
  }

  std::vector<std::set<std::string>> names_;
};

ListedAs kind_of(const ListedLock& listed, const std::vector<NodeLock>& nodes) {
  if (!listed.owner.empty()) return ListedAs::lock;
  const auto any = [&nodes](auto what) { return std::any_of(nodes.begin(), nodes.end(), what); };
  if (any([](const NodeLock& node) { return node.foreign_type; })) return ListedAs::foreign_type;
  if (any([](const NodeLock& node) { return !node.owners.empty(); })) {
    return ListedAs::several_owners;
  }
  return ListedAs::unread;
}

ListedLock summary(const std::string& name, const std::vector<NodeLock>& nodes) {
  ListedLock listed;
  listed.name = name;
  std::tie(listed.owner, listed.nodes_of_owner) = admin::leading_owner(nodes);
  listed.holder = admin::holder_of(nodes, listed.owner);
  listed.kind = kind_of(listed, nodes);
  for (const auto& node : nodes) {
    if (!node.remaining) continue;
    const bool counts = listed.kind != ListedAs::lock ||
                        (node.owners.size() == 1 && node.owners[0].owner == listed.owner);
    if (!counts) continue;
    if (!listed.remaining || *node.remaining < *listed.remaining) listed.remaining = node.remaining;
  }
  return listed;
}

/// Asks every node about every name: a scan alone would count a lock too low where it came or went
/// between the scans.
class LookUp {
 public:
  LookUp(admin::NodeQuery& query, const Names& names, LockList& list)
      : query_(query), names_(names), list_(list), silent_(list.nodes.size(), false) {}

  Result<void> run(const std::vector<std::string>& names) {
    for (std::size_t begin = 0; begin < names.size(); begin += names_per_round) {
      const auto count = std::min(names_per_round, names.size() - begin);
      if (auto done = ask({names.data() + begin, count}); !done) return done;
    }
    return {};
  }

 private:
  Result<void> ask(std::span<const std::string> names) {
    std::vector<QueryCommand> commands;
    for (const auto& name : names) {
      for (auto& question : admin::lock_questions(name)) commands.push_back(std::move(question));
    }
    std::vector<std::vector<QueryCommand>> of_nodes(silent_.size());
    for (std::size_t i = 0; i < of_nodes.size(); ++i) {
      if (!silent_[i]) of_nodes[i] = commands;
    }
    const auto answers = query_.ask(std::move(of_nodes), query_.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t at = 0; at < names.size(); ++at)
      note(names[at], *answers, admin::questions_per_lock * at);
    return {};
  }

  void note(const std::string& name, const std::vector<NodeAnswers>& answers, std::size_t at) {
    std::vector<NodeLock> nodes;
    std::size_t waiting = 0;
    bool gone = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      nodes.push_back(read(i, answers[i].answers, at));
      const auto& lock = nodes.back();
      // A node that listed the lock and now does not answer has not said that the lock is free.
      gone = gone && (lock.answered() ? lock.free() : !names_.named(i, name));
      if (lock.answered()) {
        waiting = std::max(waiting, admin::texts_of(answers[i].answers[at + 2]).size());
      }
    }
    if (gone) return;
    list_.locks.push_back(summary(name, nodes));
    list_.locks.back().waiting = waiting;
  }

  NodeLock read(std::size_t node, const std::vector<wire::Answer>& answers, std::size_t at) {
    auto& known = list_.nodes[node];
    NodeLock nothing;
    nothing.node = known.node;
    nothing.trouble = known.trouble;
    if (answers.empty()) return nothing;
    const auto& address = query_.nodes()[node];
    auto lock = admin::read_lock(address, &answers[at]);
    if (lock.answered()) lock.trouble = admin::trouble_of(answers[at + 1], address);
    if (lock.answered()) return lock;
    known.trouble = nothing.trouble = lock.trouble;
    // Asking it again would cost a node timeout for every batch that is left.
    if (!answers[at] || !answers[at + 1]) silent_[node] = true;
    return nothing;
  }

  admin::NodeQuery& query_;
  const Names& names_;
  LockList& list_;
  std::vector<bool> silent_;
};

Result<LockList> list_by(admin::NodeQuery& query, std::string_view pattern, std::size_t limit) {
  Names found(query.nodes().size());
  const auto walked = admin::walk_keys(
      query, std::vector<NodeTrouble>(query.nodes().size()), wire::redlock_layout.lock(pattern),
      [&](std::size_t node, const std::string& key) { return found.note(node, key) <= limit; });
  if (!walked) return tl::make_unexpected(walked.error());
  LockList list;
  list.quorum = query.quorum();
  for (std::size_t i = 0; i < walked->size(); ++i) {
    list.nodes.push_back({query.nodes()[i].label, (*walked)[i]});
  }
  auto names = found.all();
  list.truncated = names.size() > limit;
  while (names.size() > limit) names.erase(std::prev(names.end()));
  const auto looked = LookUp(query, found, list).run({names.begin(), names.end()});
  if (!looked) return tl::make_unexpected(looked.error());
  return list;
}

}  // namespace

Result<LockList> Admin::list(std::string_view pattern, std::size_t limit) const {
  return admin::on_members(*client_->impl(),
                           [&](admin::NodeQuery& query) { return list_by(query, pattern, limit); });
}

const char* to_string(ListedAs kind) noexcept {
  switch (kind) {
    case ListedAs::lock:
      return "lock";
    case ListedAs::several_owners:
      return "several_owners";
    case ListedAs::foreign_type:
      return "foreign_type";
    case ListedAs::unread:
      return "unread";
  }
  return "unknown";
}

}  // namespace redlock
