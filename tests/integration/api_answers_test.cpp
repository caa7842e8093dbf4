// SPDX-License-Identifier: MIT
// What Observer::on_answer tells of each node's answers: what was asked, of which attempt, and how
// long the node took.
#include <tuple>

#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

/// Which nodes answered what, by attempt.
class AnswerLog : public Observer {
 public:
  void on_answer(const NodeAnswer& answer) override {
    const std::scoped_lock lock(mutex_);
    CHECK(answer.round_trip > 0ns);
    nodes_[{answer.attempt, answer.command}].emplace(answer.node);
  }

  [[nodiscard]] std::set<std::string> nodes(std::uint64_t attempt, NodeCommand command) const {
    const std::scoped_lock lock(mutex_);
    const auto found = nodes_.find({attempt, command});
    return found == nodes_.end() ? std::set<std::string>() : found->second;
  }
  /// Of the attempts with such a command, the last one; 0 if there is none.
  [[nodiscard]] std::uint64_t last_with(NodeCommand command) const {
    const std::scoped_lock lock(mutex_);
    std::uint64_t last = 0;
    for (const auto& [key, nodes] : nodes_) {
      if (key.second == command) last = key.first;
    }
    return last;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::uint64_t, NodeCommand>, std::set<std::string>> nodes_;
};

ClientOptions observed_by(const std::shared_ptr<AnswerLog>& answers, const Fleet& fleet) {
  ClientOptions options = options_for(fleet.uris());
  options.observer = answers;
  return options;
}

TEST_CASE("each node's answers are told, those of one attempt by one number") {
  const auto answers = std::make_shared<AnswerLog>();
  const Client client = start_client(observed_by(answers, three_nodes()));
  warm_up(client, three_nodes());
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
}

TEST_CASE("a token that has to be settled is told by the second command of its attempt") {
  const Fleet fleet({.nodes = 3});
  const auto answers = std::make_shared<AnswerLog>();
  ClientOptions options = observed_by(answers, fleet);
  options.fence_floor = FenceFloor::none;
  const Client client = start_client(std::move(options));
  {
    const Lease lease = must(client.lock("seat").acquire());
    // Else a node that is reached late has no fence yet that could be raised.
    REQUIRE(eventually([&] { return nodes_with_lock(fleet, "seat") == 3; }));
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

TEST_CASE("a node that does not answer is not told as one that did") {
  Fleet fleet({.nodes = 3});
  const auto answers = std::make_shared<AnswerLog>();
  const Client client = start_client(observed_by(answers, fleet));
  warm_up(client, fleet);
  fleet.pause(2);
  Lease lease = must(client.lock("seat").acquire());
  must(lease.confirm());
  const auto attempt = answers->last_with(NodeCommand::hold);
  must(lease.release());
  CHECK(answers->nodes(attempt, NodeCommand::acquire).size() == 2);
  CHECK(answers->nodes(attempt, NodeCommand::hold).size() == 2);
  fleet.resume(2);
}

}  // namespace
}  // namespace redlock::testing
