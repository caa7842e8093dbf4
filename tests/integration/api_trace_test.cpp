// SPDX-License-Identifier: MIT
// What a program is told of each message. ClientOptions::trace: the lines of a grant, of a
// hand-off, of a loss, and what they must not have; the file that several clients write to. And
// Observer::on_answer: what a node was asked, of which attempt, and how long it took.
#include <fmt/core.h>
#include <regex>

#include "integration/api_fixture.hpp"
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

/// What a client has traced, each line without what every line begins with.
class TraceLog {
 public:
  /// What is given to this stays valid as long as some client has it.
  [[nodiscard]] std::function<void(std::string_view)> taker() const {
    return [lines = lines_](std::string_view line) { lines->add(line); };
  }
  void clear() {
    const std::scoped_lock lock(lines_->mutex);
    lines_->all.clear();
  }
  /// Everything so far.
  [[nodiscard]] std::string text() const {
    const std::scoped_lock lock(lines_->mutex);
    return lines_->all;
  }
  /// Where this is first.
  [[nodiscard]] std::size_t find(const std::string& part) const { return text().find(part); }
  [[nodiscard]] bool has(const std::string& part) const { return contains(text(), part); }
  [[nodiscard]] bool soon_has(const std::string& part) const {
    return eventually([&] { return has(part); });
  }

 private:
  struct Lines {
    void add(std::string_view line) {
      static const std::regex form(
          R"((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z (\d+) client \d+: )[^\n]+)");
      std::cmatch match;
      const bool right = std::regex_match(line.begin(), line.end(), match, form);
      CHECK_MESSAGE(right, std::string(line));
      if (!right) return;
      CHECK(match[2] == std::to_string(::getpid()));
      const std::scoped_lock lock(mutex);
      all.append(line.substr(static_cast<std::size_t>(match[1].length()))).append("\n");
    }
    std::mutex mutex;
    std::string all;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

Client start_traced(const Fleet& fleet, const TraceLog& log) {
  return start_client(fleet, [&](ClientOptions& options) { options.trace = log.taker(); });
}

TEST_CASE("a grant and its release are a line for each message, each reply and each decision") {
  CHECK_FALSE(ClientOptions{}.trace);
  TraceLog log;
  const Client client = start_traced(three_nodes(), log);
  warm_up(client, three_nodes());
  for (std::size_t node = 0; node < 3; ++node) {
    CHECK(log.has(fmt::format("node {} ({}) may vote", node, three_nodes().uri(node))));
  }
  log.clear();
  Lease lease = must(client.lock("traced").acquire());
  const std::string token = std::to_string(lease.token());
  must(lease.release());
  std::smatch grant;
  const std::string text = log.text();
  REQUIRE_MESSAGE(std::regex_search(text, grant, std::regex("ends: acquired, (grant \\d+), ")),
                  text);
  const std::string of_grant = grant[1];
  for (std::size_t node = 0; node < 3; ++node) {
    const std::string name = fmt::format("node {} ({})", node, three_nodes().uri(node));
    CAPTURE(name);
    const std::string acquire = "acquire for " + of_grant;
    const std::string release = "release for " + of_grant;
    REQUIRE(log.soon_has(name + " <- " + acquire + ": 'traced', floor "));
    REQUIRE(log.soon_has(name + " -> granted " + token + " (" + acquire + ", "));
    REQUIRE(log.soon_has(name + " <- " + release + ": 'traced'"));
    REQUIRE(log.soon_has(name + " -> released (" + release + ", "));
  }
  CHECK(log.has("attempt for 'traced' decided: won ["));
  CHECK(log.has("ends: acquired, " + of_grant + ", token " + token + ", valid for 2"));
  CHECK(log.has(of_grant + " of 'traced' was held for "));
  CHECK(log.has("ends: released"));
}

TEST_CASE("a hand-off is the same story on both sides: refused, waits, released, woken, granted") {
  TraceLog before;
  TraceLog after;
  const Client holder = start_traced(three_nodes(), before);
  const Client next = start_traced(three_nodes(), after);
  warm_up(holder, three_nodes());
  warm_up(next, three_nodes());
  before.clear();
  after.clear();
  Lease lease = lock_everywhere(holder, three_nodes(), "handed over");
  auto waits = next.lock("handed over").async_acquire({.wait = patience}).as_future();
  REQUIRE(after.soon_has("attempt for 'handed over' waits behind 0 ["));
  CHECK(after.has("-> refused, free in "));
  CHECK_FALSE(after.has("-> wakes line"));
  must(lease.release());
  const Lease handed = must(get_soon(waits));
  CHECK(before.has("<- release for grant "));
  CHECK(after.find("-> wakes line") < after.find("-> granted "));
  CHECK(after.has("attempt for 'handed over' decided: won ["));
  CHECK(after.has(fmt::format("token {}, valid for ", handed.token())));
}

TEST_CASE("a loss is traced with its reason, behind the replies that it follows from") {
  TraceLog log;
  const Client client = start_traced(three_nodes(), log);
  const Client other = start_client(three_nodes());
  Lease lease = lock_everywhere(client, three_nodes(), "forced");
  log.clear();
  must(Admin(other).force_release("forced"));
  CHECK(code_of(lease.confirm()) == Errc::lost);
  REQUIRE(log.soon_has(" is lost: forced"));
  CHECK(log.find("-> forced out (hold for grant ") < log.find(" is lost: forced"));
}

TEST_CASE("what nodes and names have in them is escaped, and no password is traced") {
  ClientOptions options = options_for(uris_as("ann:secret", three_nodes()));
  TraceLog log;
  options.trace = log.taker();
  const Client client = start_client(std::move(options));
  CHECK(code_of(client.lock("two\nlines").acquire()) == Errc::no_quorum);
  CHECK(log.has("'two\\x0alines'"));
  REQUIRE(log.soon_has("cannot vote: authentication: "));
  CHECK(log.has("-> unavailable: "));
  CHECK_FALSE(contains(log.text(), "secret"));
}

TEST_CASE("clients append whole lines to one file, and what cannot be written ends none") {
  const TemporaryDirectory place;
  const auto path = (place.path() / "trace").string();
  std::ofstream(path) << "before\n";
  ClientOptions options = options_for(three_nodes().uris());
  options.trace = trace_to_file(path);
  const Client one = start_client(options);
  options.trace = trace_to_file(path);
  const Client two = start_client(options);
  for (const Client* client : {&one, &two}) warm_up(*client, three_nodes(), "filed");
  std::istringstream lines(text_in(path));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "before");
  std::set<std::string> clients;
  while (std::getline(lines, line)) {
    static const std::regex form(R"([-\dT:.]+Z \d+ (client \d+): .+)");
    std::smatch match;
    REQUIRE_MESSAGE(std::regex_match(line, match, form), line);
    clients.insert(match[1]);
  }
  CHECK(clients.size() == 2);

  options.trace = trace_to_file("/dev/full");
  warm_up(start_client(options), three_nodes());
  CHECK_THROWS_AS(static_cast<void>(trace_to_file("/nowhere/trace")), std::system_error);
}

/// Which nodes answered what, by attempt.
class AnswerLog : public Observer {
 public:
  void on_answer(const NodeAnswer& answer) override {
    const std::scoped_lock lock(mutex_);
    CHECK(answer.round_trip > 0ns);
    nodes_[{answer.command, answer.attempt}].emplace(answer.node);
  }

  [[nodiscard]] std::set<std::string> nodes(std::uint64_t attempt, NodeCommand command) {
    const std::scoped_lock lock(mutex_);
    return nodes_[{command, attempt}];
  }
  /// Of the attempts with such a command, the last one; 0 if there is none.
  [[nodiscard]] std::uint64_t last_with(NodeCommand command) const {
    const std::scoped_lock lock(mutex_);
    std::uint64_t last = 0;
    for (const auto& [key, nodes] : nodes_) {
      if (key.first == command && !nodes.empty()) last = key.second;
    }
    return last;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<NodeCommand, std::uint64_t>, std::set<std::string>> nodes_;
};

TEST_CASE("the answers of each node that gave one are told, those of one attempt by one number") {
  Fleet fleet({.nodes = 3});
  const auto answers = std::make_shared<AnswerLog>();
  const Client client = start_observed(fleet, answers);
  warm_up(client, fleet);
  const auto before = answers->last_with(NodeCommand::acquire);
  Lease lease = must(client.lock("seat").acquire());
  must(lease.extend(20s));
  const auto attempt = answers->last_with(NodeCommand::hold);
  CHECK(attempt > before);
  must(lease.release());
  const std::set<std::string> all(client.options().nodes.begin(), client.options().nodes.end());
  for (const auto command : {NodeCommand::acquire, NodeCommand::hold, NodeCommand::release}) {
    CAPTURE(to_string(command));
    CHECK(eventually([&] { return answers->nodes(attempt, command) == all; }));
  }
  CHECK(answers->nodes(attempt, NodeCommand::settle).empty());

  fleet.pause(2);
  lease = must(client.lock("seat").acquire({.wait = patience}));
  must(lease.confirm());
  const auto without_one = answers->last_with(NodeCommand::hold);
  CHECK(without_one > attempt);
  CHECK(answers->nodes(without_one, NodeCommand::acquire).size() == 2);
  CHECK(answers->nodes(without_one, NodeCommand::hold).size() == 2);
  fleet.resume(2);
}

TEST_CASE("a token that has to be settled is told by the second command of its attempt") {
  const Fleet fleet({.nodes = 3});
  const auto answers = std::make_shared<AnswerLog>();
  const Client client = start_client(fleet, [&](ClientOptions& options) {
    options.observer = answers;
    options.fence_floor = FenceFloor::none;
  });
  {
    // Everywhere: else a node that is reached late has no fence yet that could be raised.
    const Lease lease = lock_everywhere(client, fleet, "seat");
    CHECK(lease.token() == 1);
  }
  REQUIRE(soon_free_everywhere(fleet, "seat"));
  CHECK(answers->last_with(NodeCommand::settle) == 0);
  for (const std::size_t node : {1U, 2U}) {
    const auto fence = fleet.run(node, {"KEYS", "redlock:fence:*"});
    REQUIRE(fence.starts_with("redlock:fence:"));
    fleet.run(node, {"INCRBY", fence, std::to_string(10 * node)});
  }
  must(must(client.lock("seat").acquire()).release());
  // The third node's token may settle the matter before the node that was told it answers.
  REQUIRE(eventually([&] { return answers->last_with(NodeCommand::settle) != 0; }));
  const auto settled = answers->last_with(NodeCommand::settle);
  CHECK_FALSE(answers->nodes(settled, NodeCommand::acquire).empty());
}

}  // namespace
}  // namespace redlock::testing
