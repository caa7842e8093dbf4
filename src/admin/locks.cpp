// SPDX-License-Identifier: MIT
// Reading locks: the answer of each node, and the verdict of a quorum. Plain reads, so the commands
// for one lock are not one snapshot even of one node; good enough to look at.
#include "admin/locks.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <redlock/admin.hpp>

#include "admin/node_query.hpp"
#include "admin/quarantine.hpp"
#include "admin/waiting.hpp"
#include "client/client_impl.hpp"
#include "client/options_check.hpp"
#include "client/sentence.hpp"
#include "wire/holder_text.hpp"
#include "wire/key_layout.hpp"

namespace redlock {
namespace {

using admin::NodeAnswers;
using admin::QueryCommand;
using std::chrono::milliseconds;

bool is_wrong_type(const NodeTrouble& trouble) {
  return trouble.detail.starts_with("WRONGTYPE");
}

std::optional<milliseconds> remaining_of(const wire::Answer& pttl) {
  const auto ms = admin::number_of(pttl);
  if (!ms || *ms < 0) return std::nullopt;
  return milliseconds(*ms);
}

}  // namespace

namespace admin {

std::optional<Holder> read_holder(const std::string& text, const wire::NodeAddress& node) {
  const auto fields = wire::read_holder(text);
  if (!fields) return std::nullopt;
  return Holder{.host = client::cleaned(fields->host, node),
                .pid = fields->pid,
                .label = client::cleaned(fields->label, node),
                .since = std::chrono::sys_time<milliseconds>(milliseconds(fields->since_unix_ms))};
}

std::vector<QueryCommand> lock_questions(const std::string& name) {
  const auto lock = wire::redlock_layout.lock(name);
  return {
      {"HGETALL", lock}, {"PTTL", lock}, {"ZRANGE", wire::redlock_layout.line(name), "0", "-1"}};
}

NodeLock read_lock(const wire::NodeAddress& node, const wire::Answer* answers) {
  NodeLock lock;
  lock.node = node.label;
  lock.trouble = admin::trouble_of(answers[0], node);
  if (is_wrong_type(lock.trouble)) {
    lock.foreign_type = true;
    lock.trouble = {};
  }
  auto fields = admin::fields_of(answers[0]);
  // Alone the field is no note: it keeps every owner from the lock.
  if (const auto note = fields.find(std::string(wire::HolderText::field));
      note != fields.end() && fields.size() > 1) {
    lock.holder = read_holder(note->second, node);
    fields.erase(note);
  }
  for (const auto& [owner, count] : fields) {
    const auto number = admin::number_of(wire::Value{count});
    lock.owners.push_back(
        {owner, static_cast<std::uint64_t>(std::max<std::int64_t>(number.value_or(0), 0))});
  }
  lock.remaining = remaining_of(answers[1]);
  return lock;
}

std::pair<std::string, std::uint32_t> leading_owner(const std::vector<NodeLock>& nodes) {
  std::map<std::string, std::uint32_t> counts;
  for (const auto& node : nodes) {
    if (node.owners.size() == 1) ++counts[node.owners[0].owner];
  }
  std::pair<std::string, std::uint32_t> leader;
  for (const auto& [owner, count] : counts) {
    if (count > leader.second) leader = {owner, count};
  }
  return leader;
}

std::optional<Holder> holder_of(const std::vector<NodeLock>& nodes, const std::string& owner) {
  for (const auto& node : nodes) {
    const bool has_it = node.owners.size() == 1 && node.owners[0].owner == owner;
    if (has_it && node.holder) return node.holder;
  }
  return std::nullopt;
}

}  // namespace admin

namespace {

std::vector<QueryCommand> all_questions(const std::string& name) {
  auto questions = admin::lock_questions(name);
  questions.push_back({"GET", wire::redlock_layout.fence(name)});
  for (auto& question : admin::waiting_questions(name)) questions.push_back(std::move(question));
  return questions;
}

NodeLock read_all(const std::string& name, const wire::NodeAddress& node,
                  const NodeAnswers& answers) {
  auto lock = admin::read_lock(node, answers.answers.data());
  constexpr auto at = admin::questions_per_lock;
  if (const auto fence = admin::number_of(answers.answers[at]); fence && *fence >= 0) {
    lock.fence = static_cast<std::uint64_t>(*fence);
  }
  if (!lock.answered()) return lock;
  lock.quarantine = admin::quarantine_of(answers.objection);
  lock.waiting = admin::read_waiting(name, node, &answers.answers[at + 1]);
  return lock;
}

/// `silent`: the members that the list lacks, to which those are added that do not answer.
void judge(LockReport& report, std::uint32_t silent) {
  std::tie(report.owner, report.nodes_of_owner) = admin::leading_owner(report.nodes);
  report.holder = admin::holder_of(report.nodes, report.owner);
  std::uint32_t free = 0;
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

}  // namespace

Result<LockReport> Admin::inspect(std::string_view name,
                                  std::optional<milliseconds> timeout) const {
  if (auto good = client::check_name(name); !good) return tl::make_unexpected(good.error());
  return admin::on_members(*client_->impl(), [&](admin::NodeQuery& query) -> Result<LockReport> {
    LockReport report;
    report.name = std::string(name);
    const auto answers =
        query.ask_all(all_questions(report.name), timeout.value_or(query.options().node_timeout));
    if (!answers) return tl::make_unexpected(answers.error());
    report.quorum = query.quorum();
    for (std::size_t i = 0; i < query.nodes().size(); ++i) {
      report.nodes.push_back(read_all(report.name, query.nodes()[i], (*answers)[i]));
    }
    judge(report, query.unlisted());
    report.waiting = admin::waiting_on_any(report.nodes);
    return report;
  });
}

const char* to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::free:
      return "free";
    case Verdict::no_majority:
      return "no_majority";
    case Verdict::unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace redlock
