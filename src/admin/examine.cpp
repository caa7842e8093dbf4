// SPDX-License-Identifier: MIT
// Asks each node everything that decides whether it is fit to vote. In rounds, so that the
// measurements (the round trip, the clock) wait for nothing else.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <utility>
#include <variant>

#include <redlock/admin.hpp>

#include "admin/fences.hpp"
#include "admin/marker.hpp"
#include "admin/node_query.hpp"
#include "admin/problems.hpp"
#include "admin/quarantine.hpp"
#include "admin/rights.hpp"
#include "admin/trial.hpp"
#include "admin/twins.hpp"
#include "client/client_impl.hpp"
#include "client/fork.hpp"
#include "client/sentence.hpp"
#include "client/set_name.hpp"
#include "engine/rules.hpp"
#include "wire/info_text.hpp"
#include "wire/key_layout.hpp"
#include "wire/node_address.hpp"
#include "wire/redlock_scripts.hpp"

namespace redlock {
namespace {

using admin::NodeAnswers;
using admin::QueryCommand;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// The fields of INFO; a field that the node does not report is empty.
class Info {
 public:
  Info(const wire::Answer& answer, const wire::NodeAddress& node)
      : text_(admin::text_of(answer).value_or("")), info_(text_), node_(node) {}
  Info(const Info&) = delete;

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const {
    const auto value = info_.value(key);
    return value.empty() ? std::nullopt : std::optional(client::cleaned(value, node_));
  }
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key) const {
    const auto value = info_.value(key);
    std::uint64_t number = 0;
    const auto [rest, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
    return problem == std::errc() ? std::optional(number) : std::nullopt;
  }

  [[nodiscard]] const wire::InfoText& fields() const { return info_; }

 private:
  std::string text_;
  wire::InfoText info_;
  const wire::NodeAddress& node_;
};

void take_info(NodeHealth& health, const Info& info) {
  health.version = info.text("redis_version");
  health.run_id = info.text("run_id");
  health.role = info.text("role");
  health.promoted = health.role == "master" && info.fields().was_replica();
  health.cluster = info.fields().is_in_cluster();
  if (const auto seconds = info.number("uptime_in_seconds")) {
    // A damaged number must fit into nanoseconds.
    constexpr std::chrono::seconds century = std::chrono::years(100);
    const auto most = static_cast<std::uint64_t>(century.count());
    health.uptime = std::chrono::seconds(std::min(*seconds, most));
  }
  if (const auto enabled = info.text("aof_enabled")) health.append_only = *enabled == "1";
  if (const auto status = info.text("aof_last_write_status"); status && *status != "ok") {
    health.append_error = status;
  }
  health.eviction = info.text("maxmemory_policy");
  health.max_memory = info.number("maxmemory");
}

// Redis 6.2 takes one name at a time.
constexpr std::array asked_settings{"appendfsync", "protected-mode",   "bind",        "port",
                                    "tls-port",    "tls-auth-clients", "requirepass", "masterauth"};

using Settings = std::map<std::string, std::string>;

std::string value_of(const Settings& settings, const char* name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

/// False if none is set: before Redis 7 that means every address.
bool is_loopback_alone(std::string_view addresses) {
  for (std::istringstream words{std::string(addresses)}; !words.eof();) {
    std::string word;
    words >> word;
    if (word.starts_with('-')) word.erase(0, 1);
    if (!word.empty() && !word.starts_with("127.") && word != "::1") return false;
  }
  return !addresses.empty();
}

/// Whether clients of other machines are let in without a certificate, whatever the users are.
bool is_exposed(const NodeHealth& health, const Settings& settings) {
  const auto is_off = [&](const char* port) {
    const auto value = value_of(settings, port);
    return value == "0" || value.empty();
  };
  if (!settings.contains("protected-mode")) return false;  // other rules report that
  const bool by_certificate = is_off("tls-port") || value_of(settings, "tls-auth-clients") == "yes";
  if (is_off("port") && by_certificate) return false;
  const auto bound = value_of(settings, "bind");
  if (is_loopback_alone(bound)) return false;
  if (value_of(settings, "protected-mode") != "yes") return true;
  // Before Redis 7 a node with `bind` is not protected.
  return !wire::ServerVersion::parse(health.version.value_or("")).at_least(7, 0) && !bound.empty();
}

void take_settings(NodeHealth& health, const Settings& settings, const wire::NodeAddress& node) {
  if (const auto fsync = value_of(settings, "appendfsync"); !fsync.empty()) {
    health.append_fsync = client::cleaned(fsync, node);
  }
  // As far as this shows; strangers() tries it.
  health.open = is_exposed(health, settings);
  if (node.user.empty() || node.user == "default") return;
  for (const char* name : {"requirepass", "masterauth"}) {
    if (!value_of(settings, name).empty()) health.readable_passwords.emplace_back(name);
  }
}

std::optional<microseconds> read_time(const wire::Answer& answer) {
  const auto parts = admin::texts_of(answer);
  if (parts.size() != 2) return std::nullopt;
  const auto time = wire::unix_microseconds(parts[0], parts[1]);
  return time == 0 ? std::nullopt : std::optional(microseconds(time));
}

admin::Expectation expectation(const admin::NodeQuery& query) {
  const auto& options = query.options();
  admin::Expectation expected{{options.max_lease}};
  for (const auto& uri : options.nodes) {
    if (const auto node = wire::parse_node_uri(uri)) expected.listed.push_back(node->label);
  }
  expected.drift_allowance = engine::rules::drift_allowance(options.lease, options.drift_factor);
  return expected;
}

std::optional<CertificateHealth> health_of(const std::optional<tls::CertificatePeriod>& period) {
  if (!period) return std::nullopt;
  return CertificateHealth{period->begins, period->ends, period->of_authority};
}

bool readable_by_others(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && (about.st_mode & S_IROTH) != 0;
}

/// One examination. A node that does not answer in one round is not asked in the next.
class Examiner {
 public:
  Examiner(Client::Impl& client, admin::NodeQuery& query) : client_(client), query_(query) {
    for (const auto& node : query.nodes()) {
      result_.nodes.emplace_back();
      result_.nodes.back().node = node.label;
    }
  }

  Result<Examination> run() {
    const auto timeout = query_.options().node_timeout;
    if (auto done = connect(); !done) return tl::make_unexpected(done.error());
    if (auto done = ping(timeout); !done) return tl::make_unexpected(done.error());
    if (auto done = clock(timeout); !done) return tl::make_unexpected(done.error());
    if (auto done = the_rest(timeout); !done) return tl::make_unexpected(done.error());
    if (auto done = twins(); !done) return tl::make_unexpected(done.error());
    if (auto done = lock(timeout); !done) return tl::make_unexpected(done.error());
    if (auto done = rights(timeout); !done) return tl::make_unexpected(done.error());
    if (auto done = strangers(); !done) return tl::make_unexpected(done.error());
    if (auto done = fences(); !done) return tl::make_unexpected(done.error());
    admin::quarantine_at_first_sight(result_.nodes, query_.nodes(), query_.options());
    auto expected = expectation(query_);
    const auto set = set_shown(expected);
    expected.quorum = result_.quorum = set.majorities().quorum();
    expected.set_name = set.name();
    expected.members = set.known().value_or(engine::SetConfiguration());
    expected.set_open =
        !expected.set_name &&
        std::ranges::any_of(result_.nodes, [](const auto& node) { return !node.answered(); });
    expected.now = now_;
    for (auto& node : result_.nodes) node.problems = admin::problems_of_node(node, expected);
    result_.problems = admin::problems_of_set(result_.nodes, expected);
    if (query_.tls()) client_files();
    return std::move(result_);
  }

 private:
  void client_files() {
    auto own = query_.tls()->own_certificate(now_);
    result_.client_certificate = health_of(own.period);
    admin::ClientFiles files{result_.client_certificate, std::move(own.problem), {}};
    const auto& key = query_.options().tls.key;
    if (readable_by_others(key)) files.exposed_key = key;
    for (auto& problem : admin::problems_of_client(files, now_)) {
      result_.problems.push_back(std::move(problem));
    }
  }

  template <typename Take>
  Result<void> round(const std::vector<QueryCommand>& commands, milliseconds timeout, Take take) {
    return round_of([&commands](const NodeHealth&) { return commands; }, timeout, take);
  }

  // `take` is given each node that answered the first of its commands at all.
  template <typename Commands, typename Take>
  Result<void> round_of(Commands commands, milliseconds timeout, Take take) {
    std::vector<std::vector<QueryCommand>> of_nodes(result_.nodes.size());
    for (std::size_t i = 0; i < of_nodes.size(); ++i) {
      if (result_.nodes[i].answered()) of_nodes[i] = commands(result_.nodes[i]);
    }
    const auto answers = query_.ask(of_nodes, timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t i = 0; i < of_nodes.size(); ++i) {
      if (of_nodes[i].empty()) continue;
      auto& health = result_.nodes[i];
      const auto& answer = (*answers)[i].answers[0];
      if (!answer) {
        health.trouble = admin::trouble_of(answer, query_.nodes()[i]);
      } else {
        take(health, (*answers)[i], query_.nodes()[i]);
      }
    }
    return {};
  }

  Result<void> connect() {
    return round({{"PING"}}, query_.patience(),
                 [](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress& node) {
                   const auto trouble = admin::trouble_of(answers.answers[0], node);
                   if (!still_answers(trouble.cause)) health.trouble = trouble;
                 });
  }

  /// By the markers. One that is damaged counts for its name.
  [[nodiscard]] engine::SetMembership set_shown(const admin::Expectation& expected) const {
    std::vector<std::optional<engine::Membership>> markers;
    for (const auto& node : result_.nodes) {
      auto& marker = markers.emplace_back();
      if (!node.marker || node.marker->set.empty()) continue;
      marker = {{}, {node.marker->set, 0, {}}};
      if (!admin::disagreement(*node.marker, expected.set).empty()) continue;
      marker = admin::as_written(*node.marker).membership();
    }
    return client::set_of(std::move(markers));
  }

  static bool may_vote_some_day(const NodeHealth& node) {
    return node.answered() && !node.cluster && node.role.value_or("master") == "master";
  }

  // A node that cannot write refuses PING, too, but answers INFO.
  static bool still_answers(Cause cause) {
    return cause == Cause::write_error || cause == Cause::master_down;
  }

  Result<void> ping(milliseconds timeout) {
    return round({{"PING"}}, timeout,
                 [](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress&) {
                   health.round_trip = answers.answered - answers.asked;
                   health.certificate = health_of(answers.trusted_by);
                 });
  }

  Result<void> clock(milliseconds timeout) {
    // In microseconds: a damaged clock may show a time that nanoseconds cannot.
    const auto wall = std::chrono::duration_cast<microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    const auto boot = BootClock::now();
    return round({{"TIME"}}, timeout,
                 [=](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress&) {
                   const auto time = read_time(answers.answers[0]);
                   if (!time) return;
                   const auto middle = answers.asked + (answers.answered - answers.asked) / 2;
                   health.clock_offset =
                       *time - wall - std::chrono::duration_cast<microseconds>(middle - boot);
                 });
  }

  Result<void> the_rest(milliseconds timeout) {
    std::vector<QueryCommand> questions{{"INFO"},
                                        {"HGETALL", std::string(wire::redlock_layout.marker)},
                                        {"PTTL", std::string(wire::redlock_layout.clock)}};
    for (const char* name : asked_settings) questions.push_back({"CONFIG", "GET", name});
    return round(questions, timeout,
                 [](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress& node) {
                   const Info info(answers.answers[0], node);
                   take_info(health, info);
                   Settings settings;
                   for (std::size_t i = 3; i < answers.answers.size(); ++i) {
                     settings.merge(admin::fields_of(answers.answers[i]));
                   }
                   take_settings(health, settings, node);
                   const auto noted = admin::number_of(answers.answers[2]).value_or(0);
                   health.clock_noted = milliseconds(std::max(noted, std::int64_t{0}));
                   if (const auto marker = admin::read_marker(answers.answers[1], node)) {
                     health.marker = {marker->id,           marker->layout,   marker->nodes,
                                      marker->max_lease_ms, marker->set_name, marker->epoch,
                                      marker->members};
                     health.vouched =
                         !marker->vouched.empty() && marker->vouched == info.fields().promotion();
                   }
                 });
  }

  Result<void> twins() {
    std::vector<std::string> run_ids;
    for (const auto& node : result_.nodes) run_ids.push_back(node.run_id.value_or(""));
    const auto twins = admin::find_twins(query_, run_ids);
    if (!twins) return tl::make_unexpected(twins.error());
    for (std::size_t i = 0; i < twins->size(); ++i) {
      if ((*twins)[i]) result_.nodes[i].same_as = result_.nodes[*(*twins)[i]].node;
    }
    return {};
  }

  Result<void> lock(milliseconds timeout) {
    return round_of(
        admin::trial_of, timeout,
        [](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress& node) {
          health.refusal = admin::refusal_of(answers, node);
          if (health.refusal.cause == Cause::none)
            health.serves_in_order = admin::serves_in_order(answers, node);
        });
  }

  Result<void> rights(milliseconds timeout) {
    return round_of(admin::questions_of_rights, timeout,
                    [](NodeHealth& health, const NodeAnswers& answers, const wire::NodeAddress&) {
                      health.missing_rights = admin::missing_rights(answers);
                    });
  }

  /// Tries to delete an unused key, as a client without a password, on nodes that seem open.
  Result<void> strangers() {
    std::vector<std::vector<QueryCommand>> questions(result_.nodes.size());
    bool any = false;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const auto& health = result_.nodes[i];
      if (!health.open || query_.nodes()[i].secrets().words().empty()) continue;
      questions[i] = {{"DEL", wire::redlock_layout.lock("redlock-doctor") + ":rights"}};
      any = true;
    }
    if (!any) return {};
    auto query = admin::NodeQuery::inspecting(client_, admin::Login::none);
    if (!query) return tl::make_unexpected(query.error());
    const auto answers = query->ask(questions, query_.patience());
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (questions[i].empty()) continue;
      const auto& answer = (*answers)[i].answers[0];
      result_.nodes[i].open =
          answer && !std::holds_alternative<wire::Value::ErrorText>(answer->data);
    }
    return {};
  }

  Result<void> fences() {
    const auto fences = admin::read_fences(query_, result_.nodes);
    if (!fences) return tl::make_unexpected(fences.error());
    const bool is_set = std::ranges::any_of(
        result_.nodes, [](const NodeHealth& node) { return node.marker.has_value(); });
    std::vector<bool> remembers;
    for (const auto& node : result_.nodes) {
      remembers.push_back(may_vote_some_day(node) && (node.marker || !is_set));
    }
    admin::compare_fences(result_.nodes, *fences, remembers, median_clock());
    return {};
  }

  [[nodiscard]] microseconds median_clock() const {
    std::vector<microseconds> offsets;
    for (const auto& node : result_.nodes) {
      if (node.clock_offset) offsets.push_back(*node.clock_offset);
    }
    std::ranges::sort(offsets);
    return now_.time_since_epoch() +
           (offsets.empty() ? microseconds::zero() : offsets[(offsets.size() - 1) / 2]);
  }

  Client::Impl& client_;
  admin::NodeQuery& query_;
  const std::chrono::sys_seconds now_ =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Examination result_;
};

/// Gives the damaged fences of examined nodes their new values.
class Mending {
 public:
  Mending(admin::NodeQuery& query, const std::vector<NodeHealth>& nodes)
      : query_(query), commands_(nodes.size()), asked_(nodes.size()) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const auto& fence : nodes[i].damaged_fences) note(i, nodes[i], fence);
    }
  }

  Result<std::vector<MendedFence>> run() {
    const auto answers = query_.ask(commands_, query_.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      for (std::size_t at = 0; at < asked_[i].size(); ++at) {
        fences_[asked_[i][at]].problem = problem_of((*answers)[i].answers[at], query_.nodes()[i]);
      }
    }
    return std::move(fences_);
  }

 private:
  void note(std::size_t node, const NodeHealth& health, const DamagedFence& fence) {
    fences_.push_back({health.node, fence, {}});
    auto& problem = fences_.back().problem;
    if (!fence.mended) {
      problem =
          "too few of the other nodes answer, or have kept their counters; try again when "
          "more do";
    } else if (!health.clock_offset) {
      problem = "its clock cannot be read; allow the user TIME";
    }
    if (!problem.empty()) return;
    constexpr std::chrono::minutes latest(1);
    const auto now = std::chrono::duration_cast<microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    commands_[node].push_back(
        {"EVAL", std::string(wire::scripts::mend), "1",
         std::string(wire::redlock_layout.fence_prefix) + std::to_string(fence.stripe), fence.value,
         std::to_string(*fence.mended),
         std::to_string((now + *health.clock_offset + latest).count())});
    asked_[node].push_back(fences_.size() - 1);
  }

  static std::string problem_of(const wire::Answer& answer, const wire::NodeAddress& node) {
    const auto trouble = admin::trouble_of(answer, node, wire::scripts::mend);
    if (trouble.cause != Cause::none) {
      return trouble.detail.empty() ? std::string(to_string(trouble.cause)) : trouble.detail;
    }
    const auto reply = admin::number_of(answer);
    if (reply == 1) return {};
    return reply == 0 ? "it has changed meanwhile; look again"
                      : "the message took more than a minute; try again";
  }

  admin::NodeQuery& query_;
  std::vector<std::vector<QueryCommand>> commands_;
  std::vector<std::vector<std::size_t>> asked_;  // places in fences_
  std::vector<MendedFence> fences_;
};

}  // namespace

Result<std::vector<MendedFence>> Admin::mend_fences() const {
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  const auto examination = Examiner(*client_->impl(), *query).run();
  if (!examination) return tl::make_unexpected(examination.error());
  const auto listed = engine::quorum_of(static_cast<std::uint32_t>(examination->nodes.size()));
  if (examination->quorum > listed) {
    return tl::make_unexpected(
        Error{Errc::no_quorum,
              "no counter was changed: the nodes name more members of the set than the list has; "
              "give the whole list, or one member",
              {}});
  }
  return Mending(*query, examination->nodes).run();
}

Result<Examination> Admin::examine() const {
  auto query = admin::NodeQuery::inspecting(*client_->impl());
  if (!query) return tl::make_unexpected(query.error());
  return Examiner(*client_->impl(), *query).run();
}

class REDLOCK_NO_EXPORT Examinations::Impl {
 public:
  explicit Impl(const Client& client) : client_(client) {}

  [[nodiscard]] bool forked() const noexcept { return generation_ != client::process_generation(); }

  Result<Examination> next() {
    if (forked()) return tl::make_unexpected(client_.impl()->closed_error());
    if (client_.impl()->tls()) query_.reset();
    if (!query_) {
      auto query = admin::NodeQuery::inspecting(*client_.impl());
      if (!query) return tl::make_unexpected(query.error());
      query_.emplace(std::move(*query));
    }
    return Examiner(*client_.impl(), *query_).run();
  }

 private:
  const Client& client_;
  std::uint64_t generation_ = client::process_generation();
  std::optional<admin::NodeQuery> query_;
};

Examinations::Examinations(const Client& client) : impl_(std::make_unique<Impl>(client)) {}

Examinations::~Examinations() {
  // The thread that would be joined does not exist in a child.
  if (impl_->forked()) client::keep_forever(std::move(impl_));
}

Result<Examination> Examinations::next() {
  return impl_->next();
}

}  // namespace redlock
