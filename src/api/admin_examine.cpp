// SPDX-License-Identifier: MIT
// Asks each node everything that decides whether it is fit to vote, and writes the marker on nodes
// that have none.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <redlock/admin.hpp>

#include "api/admin_ask.hpp"
#include "api/admin_problems.hpp"
#include "api/client_impl.hpp"
#include "api/sentence.hpp"
#include "io/kernel_random.hpp"
#include "io/key_layout.hpp"
#include "redlock_scripts.hpp"

namespace redlock {
namespace {

using api::Command;
using api::NodeAnswers;
using std::chrono::microseconds;

using Fields = std::map<std::string, std::string>;

Fields read_info(const io::Answer& answer) {
  Fields fields;
  const auto text = api::text_of(answer).value_or("");
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    auto line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    if (const auto colon = line.find(':'); colon != std::string::npos) {
      fields[line.substr(0, colon)] = line.substr(colon + 1);
    }
    begin = end + 1;
  }
  return fields;
}

std::optional<std::string> find(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint64_t> find_number(const Fields& fields, const std::string& name) {
  const auto text = find(fields, name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const auto [rest, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  return problem == std::errc() ? std::optional(number) : std::nullopt;
}

void take_info(NodeHealth& health, const Fields& info, const io::NodeAddress& node) {
  const auto shown = [&](const std::string& name) -> std::optional<std::string> {
    const auto value = find(info, name);
    return value ? std::optional(api::cleaned(*value, node)) : std::nullopt;
  };
  health.version = shown("redis_version");
  health.run_id = shown("run_id");
  health.role = shown("role");
  health.promoted =
      health.role == "master" && find(info, "second_repl_offset").value_or("-1") != "-1";
  health.cluster = find(info, "cluster_enabled") == "1";
  if (const auto seconds = find_number(info, "uptime_in_seconds")) {
    health.uptime = std::chrono::seconds(*seconds);
  }
  if (const auto enabled = find(info, "aof_enabled")) health.append_only = *enabled == "1";
  if (const auto status = shown("aof_last_write_status"); status && *status != "ok") {
    health.append_error = status;
  }
  health.eviction = shown("maxmemory_policy");
  health.max_memory = find_number(info, "maxmemory");
}

std::optional<Marker> read_marker(const io::Answer& answer, const io::NodeAddress& node) {
  const auto fields = api::fields_of(answer);
  if (fields.empty()) return std::nullopt;
  const auto field = [&](const char* name) {
    return api::cleaned(find(fields, name).value_or("nothing"), node);
  };
  return Marker{field("id"), field("layout"), field("nodes"), field("max_lease_ms")};
}

std::optional<microseconds> read_time(const io::Answer& answer) {
  const auto parts = api::texts_of(answer);
  if (parts.size() != 2) return std::nullopt;
  std::array<std::int64_t, 2> numbers{};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [rest, problem] =
        std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), numbers[i]);
    if (problem != std::errc()) return std::nullopt;
  }
  return microseconds(numbers[0] * 1'000'000 + numbers[1]);
}

api::Expectation expectation(const Client::Impl& client) {
  const auto& options = client.options();
  const auto drift = std::chrono::duration<double, std::milli>(
      static_cast<double>(options.lease.count()) * options.drift_factor);
  return {
      client.nodes().size(), options.max_lease,
      std::chrono::duration_cast<std::chrono::nanoseconds>(drift) + std::chrono::milliseconds(2)};
}

/// An examination in its rounds; a node that fails the first is not asked again.
class Examiner {
 public:
  explicit Examiner(Client::Impl& client) : client_(client), result_{} {
    result_.quorum = api::quorum_of(client.nodes().size());
    for (const auto& node : client.nodes()) {
      result_.nodes.emplace_back();
      result_.nodes.back().node = node.label;
    }
  }

  Result<Examination> run() {
    const auto& options = client_.options();
    const auto patience = options.resolve_timeout + options.connect_timeout + options.node_timeout;
    for (const auto round :
         {&Examiner::connect, &Examiner::ping, &Examiner::clock, &Examiner::everything_else}) {
      const auto timeout = round == &Examiner::connect ? patience : options.node_timeout;
      if (auto done = (this->*round)(timeout); !done) return tl::make_unexpected(done.error());
    }
    const auto expected = expectation(client_);
    for (auto& node : result_.nodes) node.problems = api::problems_of_node(node, expected);
    result_.problems = api::problems_of_set(result_.nodes, expected);
    return std::move(result_);
  }

 private:
  Result<std::vector<NodeAnswers>> ask(const std::vector<Command>& commands,
                                       std::chrono::milliseconds timeout) {
    std::vector<std::vector<Command>> of_nodes(result_.nodes.size());
    for (std::size_t i = 0; i < of_nodes.size(); ++i) {
      if (result_.nodes[i].reachable()) of_nodes[i] = commands;
    }
    return api::ask_nodes(client_, std::move(of_nodes), timeout);
  }

  // What `take` makes of each node that answered the first of these commands.
  template <typename Take>
  Result<void> round(const std::vector<Command>& commands, std::chrono::milliseconds timeout,
                     Take take) {
    const auto answers = ask(commands, timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t i = 0; i < result_.nodes.size(); ++i) {
      const auto& of_node = (*answers)[i];
      if (of_node.answers.empty()) continue;
      const auto trouble = api::trouble_of(of_node.answers[0], client_.nodes()[i]);
      if (!of_node.answers[0]) result_.nodes[i].trouble = trouble;
      take(result_.nodes[i], of_node, client_.nodes()[i]);
    }
    return {};
  }

  Result<void> connect(std::chrono::milliseconds timeout) {
    return round({{"PING"}}, timeout,
                 [](NodeHealth& health, const NodeAnswers& answers, const io::NodeAddress& node) {
                   health.trouble = api::trouble_of(answers.answers[0], node);
                 });
  }

  Result<void> ping(std::chrono::milliseconds timeout) {
    return round({{"PING"}}, timeout,
                 [](NodeHealth& health, const NodeAnswers& answers, const io::NodeAddress&) {
                   if (health.reachable()) health.round_trip = answers.answered - answers.asked;
                 });
  }

  Result<void> clock(std::chrono::milliseconds timeout) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    const auto boot = BootClock::now();
    return round({{"TIME"}}, timeout,
                 [&](NodeHealth& health, const NodeAnswers& answers, const io::NodeAddress&) {
                   const auto time = read_time(answers.answers[0]);
                   if (!time) return;
                   const auto middle = answers.asked + (answers.answered - answers.asked) / 2;
                   const auto ours =
                       std::chrono::duration_cast<microseconds>(wall + (middle - boot));
                   health.clock_offset = *time - ours;
                 });
  }

  Result<void> everything_else(std::chrono::milliseconds timeout) {
    return round({{"INFO"},
                  {"CONFIG", "GET", "appendfsync"},
                  {"HGETALL", std::string(io::KeyLayout::marker)}},
                 timeout,
                 [](NodeHealth& health, const NodeAnswers& answers, const io::NodeAddress& node) {
                   take_info(health, read_info(answers.answers[0]), node);
                   const auto config = api::fields_of(answers.answers[1]);
                   if (const auto fsync = find(config, "appendfsync")) {
                     health.append_fsync = api::cleaned(*fsync, node);
                   }
                   health.marker = read_marker(answers.answers[2], node);
                 });
  }

  Client::Impl& client_;
  Examination result_;
};

std::string random_id() {
  io::KernelRandom random;
  engine::OwnerId id{{random.next(), random.next()}};
  return engine::to_hex(id);
}

NodeAdoption adoption_of(const io::Answer& answer, const io::NodeAddress& node,
                         const api::Expectation& expected) {
  NodeAdoption adoption;
  adoption.node = node.label;
  const auto trouble = api::trouble_of(answer, node);
  if (trouble.cause != Cause::none) {
    adoption.cause = trouble.cause;
    adoption.detail = trouble.detail.empty() ? to_string(trouble.cause) : trouble.detail;
  } else if (api::text_of(answer) == "written") {
    adoption.adoption = Adoption::written;
  } else if (const auto marker = read_marker(answer, node)) {
    adoption.detail = api::disagreement(*marker, expected);
    adoption.adoption = adoption.detail.empty() ? Adoption::already_there : Adoption::disagrees;
  } else {
    adoption.detail = "it answered something that is not a marker";
  }
  return adoption;
}

}  // namespace

Result<Examination> Admin::examine() const {
  return Examiner(*client_->impl()).run();
}

Result<std::vector<NodeAdoption>> Admin::adopt() const {
  auto& client = *client_->impl();
  const auto expected = expectation(client);
  std::vector<std::vector<Command>> commands;
  for (std::size_t i = 0; i < expected.nodes; ++i) {
    commands.push_back(
        {{"EVAL", std::string(io::scripts::adopt), "1", std::string(io::KeyLayout::marker),
          random_id(), std::string(io::KeyLayout::id), std::to_string(expected.nodes),
          std::to_string(expected.max_lease.count())}});
  }
  const auto answers = api::ask_nodes(client, std::move(commands), client.options().node_timeout);
  if (!answers) return tl::make_unexpected(answers.error());
  std::vector<NodeAdoption> adoptions;
  for (std::size_t i = 0; i < expected.nodes; ++i) {
    adoptions.push_back(adoption_of((*answers)[i].answers[0], client.nodes()[i], expected));
  }
  return adoptions;
}

}  // namespace redlock
