// SPDX-License-Identifier: MIT
// The table of leases, and what one of them knows of its nodes: compact, and as exact as what they
// are compact forms of.
#include "engine/id_table.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/lease/node_grants.hpp"
#include "support/failing_new.hpp"

using namespace redlock::engine;
using namespace std::chrono_literals;

namespace {

template <typename Kept>
struct Entry {
  std::uint64_t number;
  Kept same;  // what is lost, or destroyed twice, is noticed
  [[nodiscard]] std::uint64_t id() const { return number; }
};
using Numbered = Entry<std::unique_ptr<std::uint64_t>>;
using Counted = Entry<std::shared_ptr<int>>;
using Table = IdTable<Numbered>;

Numbered numbered(std::uint64_t number) {
  return {number, std::make_unique<std::uint64_t>(number)};
}

void check_same(const Table& table, const std::map<std::uint64_t, const Numbered*>& expected) {
  REQUIRE(table.size() == expected.size());
  std::size_t seen = 0;
  table.for_each([&](const Numbered& value) {
    ++seen;
    REQUIRE(expected.contains(value.number));
  });
  CHECK(seen == expected.size());
  for (const auto& [id, place] : expected) {
    REQUIRE(table.find(id) == place);
    REQUIRE(*place->same == id);
    REQUIRE(&table.in_slot(table.slot_of(id)) == place);
  }
}

}  // namespace

TEST_CASE("a table has what was added and not taken, each at an address that stays") {
  for (const std::uint64_t stride : {1U, 2U, 16U, 1'000U}) {
    CAPTURE(stride);
    Table table;
    std::map<std::uint64_t, const Numbered*> expected;
    std::mt19937 random(static_cast<std::uint32_t>(stride));
    std::uint64_t last = 0;
    for (int step = 0; step < 6'000; ++step) {
      // It grows, shrinks to nothing, and grows again.
      const bool grows = step % 2'000 < 1'000;
      if (random() % 8 < (grows ? 6U : 2U)) {
        last += stride;
        expected[last] = &table.add(numbered(last));
      } else if (!expected.empty()) {
        const auto steps = static_cast<std::ptrdiff_t>(random() % expected.size());
        const auto chosen = std::next(expected.begin(), steps);
        CHECK(*table.take(*table.find(chosen->first)).same == chosen->first);
        CHECK(table.find(chosen->first) == nullptr);
        expected.erase(chosen);
      }
      if (step % 250 == 0) check_same(table, expected);
    }
    check_same(table, expected);
  }
}

TEST_CASE("a table lets go of each value once: when it is taken, and at the end of the table") {
  const auto counter = std::make_shared<int>();
  const auto alive = [&] { return counter.use_count() - 1; };
  {
    IdTable<Counted> table;
    for (std::uint64_t id = 0; id < 100; ++id) table.add({id, counter});
    CHECK(alive() == 100);
    for (std::uint64_t id = 0; id < 100; id += 2) CHECK(table.take(*table.find(id)).id() == id);
    CHECK(alive() == 50);
    IdTable<Counted> other;
    other.add({200, counter});
    other = std::move(table);
    CHECK(alive() == 50);
    CHECK(other.find(200) == nullptr);
    CHECK(table.empty());
    CHECK(table.find(7) == nullptr);
    table.add({8, counter});
    CHECK(alive() == 51);
  }
  CHECK(alive() == 0);
}

TEST_CASE("what was taken out makes room for what comes, last first, also after a move") {
  Table table;
  std::vector<const Numbered*> places;
  for (std::uint64_t id = 1; id <= 140; ++id) places.push_back(&table.add(numbered(id)));
  for (const std::uint64_t id : {5U, 130U, 12U}) table.take(*table.find(id));
  Table other = std::move(table);
  table.add(numbered(141));  // in room of its own, and not in the other's
  CHECK(*table.find(141)->same == 141);
  for (const std::size_t place : {11U, 129U, 4U}) {
    CHECK(&other.add(numbered(200 + place)) == places[place]);
  }
  CHECK(other.size() == 140);
  for (const std::uint64_t id : {211U, 329U, 204U, 1U, 140U}) CHECK(*other.find(id)->same == id);
  for (const std::uint64_t id : {5U, 130U, 12U, 141U}) CHECK(other.find(id) == nullptr);
}

TEST_CASE("a table that could not keep the numbers of freed slots goes on without these") {
  Table table;
  for (std::uint64_t id = 1; id <= 28; ++id) table.add(numbered(id));
  {
    const redlock::testing::FailingAllocations none(1, 100);
    for (std::uint64_t id = 1; id <= 8; ++id) table.take(*table.find(id));
  }
  for (std::uint64_t id = 29; id <= 100; ++id) table.add(numbered(id));
  for (std::uint64_t id = 9; id <= 100; ++id) {
    REQUIRE(table.find(id) != nullptr);
    CHECK(*table.find(id)->same == id);
  }
}

TEST_CASE("the ids of a table are listed from the oldest on, whatever was taken and came again") {
  Table table;
  for (std::uint64_t id = 1; id <= 100; ++id) table.add(numbered(id * 1'000));
  for (std::uint64_t id = 1; id <= 100; id += 3) table.take(*table.find(id * 1'000));
  for (std::uint64_t id = 101; id <= 120; ++id) table.add(numbered(id * 1'000));
  const std::vector<std::uint64_t> ids = table.ids();
  CHECK(ids.size() == table.size());
  CHECK(std::ranges::is_sorted(ids));
  for (const auto id : ids) CHECK(table.find(id) != nullptr);
}

TEST_CASE("no id is special to a table: not 0, not the largest, none that is 2^32 from another") {
  Table table;
  const std::vector<std::uint64_t> ids{
      0, 1, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1, UINT64_MAX / 16 * 16, UINT64_MAX};
  for (const auto id : ids) CHECK(table.find(id) == nullptr);
  for (const auto id : ids) table.add(numbered(id));
  for (const auto id : ids) {
    CAPTURE(id);
    REQUIRE(table.find(id) != nullptr);
    CHECK(*table.take(*table.find(id)).same == id);
    CHECK(table.find(id) == nullptr);
  }
  CHECK(table.empty());
}

TEST_CASE("a node's time is rounded down to 1 us, before the clock's beginning as well") {
  NodeGrant grant;
  CHECK(grant.until() == Instant::min());
  for (const Duration time : {0ns, 1'000ns, 999ns, 1'000'000ns, Duration(24h * 365 * 100), -1ns,
                              -1'000ns, Duration(-24h * 365 * 100)}) {
    CAPTURE(time.count());
    grant.set_until(Instant(time));
    CHECK(grant.until() <= Instant(time));
    CHECK(Instant(time) - grant.until() < 1us);
    CHECK((grant.possession == Possession::unknown));
  }
  grant.set_until(Instant(29'698ms));  // whole milliseconds are kept
  CHECK(grant.until() == Instant(29'698ms));
  grant.set_until(Instant::min());
  CHECK(grant.until() == Instant::min());
}

TEST_CASE("a node that came after the others counts as they do once it was asked") {
  NodeGrants grants(NodeSet::first(5), true);
  const NodeIndex late = 6;
  CHECK((grants[late].possession == Possession::not_ours));
  grants.limit(late, Instant(1s));
  grants.shorten(late, 1s);
  CHECK(grants[late].until() == Instant::min());
  grants.hold_sent(late);
  CHECK(grants.may_answer_late().contains(late));
  CHECK(grants.may_hold() == NodeSet::first(5));
  for (const NodeIndex node : {0U, 1U, late}) grants.confirm(node, Instant(1s * (node + 1)));
  CHECK(grants.ours().size() == 3);
  const Majorities majority({NodeSet::first(7) - NodeSet::of(2) - NodeSet::of(5), 3});
  CHECK(grants.valid_until(majority) == Instant(1s));
  grants.withdraw(0);
  CHECK(grants.valid_until(majority) == Instant::min());
}

TEST_CASE("the grants of many nodes are counted, copied and moved as those of few") {
  for (const std::uint32_t nodes : {1U, 3U, 5U, 6U, 7U, NodeSet::max_nodes}) {
    CAPTURE(nodes);
    NodeGrants asked(NodeSet::first(nodes), true);
    CHECK(asked.may_hold() == NodeSet::first(nodes));
    CHECK(asked.ours() == NodeSet{});
    NodeGrants grants = asked;
    for (NodeIndex node = 0; node < nodes; ++node) grants.confirm(node, Instant(1s * (node + 1)));
    CHECK(asked.ours() == NodeSet{});  // a copy of its own
    const NodeGrants moved = std::move(grants);
    CHECK(moved.ours() == NodeSet::first(nodes));
    CHECK(moved.can_be_ours() == NodeSet::first(nodes));
    const Majorities majority({NodeSet::first(nodes), quorum_of(nodes)});
    CHECK(moved.valid_until(majority) == Instant(1s * (nodes - quorum_of(nodes) + 1)));
  }
}
