// SPDX-License-Identifier: MIT
// What Observer::on_answer tells of each node's answers: what was asked, of which attempt, and how
// long the node took.
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

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
