// SPDX-License-Identifier: MIT
// No key that the library writes stays for good, but for the fences and the marker: what is left on
// a node ends by itself, however the programs ended that left it, and holds no more than documents
// say.
#include "api_fixture.hpp"
#include "support/documented_keys.hpp"

namespace redlock::testing {
namespace {

constexpr std::chrono::milliseconds max_lease{2'000};
constexpr KeyTerms terms{.max_lease = max_lease};

/// Rows of the table of documented keys, by their places, of which a key was seen.
std::set<const DocumentedKey*> met;

void judge(const std::string& key, long long ends_in, std::size_t size) {
  CAPTURE(key);
  CAPTURE(ends_in);
  const DocumentedKey* const row = documented_key(key);
  REQUIRE_MESSAGE(row != nullptr, "the key is in no row of the table");
  met.insert(row);
  CHECK((ends_in == -1) == (row->longest == nullptr));
  CHECK(ends_in >= -1);
  if (row->longest != nullptr) CHECK(ends_in <= row->longest(terms).count());
  CHECK(size <= row->most);
}

/// Looks at every key of every node.
void inspect(const Fleet& fleet) {
  for (std::size_t node = 0; node < fleet.size(); ++node) {
    // In one step, so that no key ends between its name and its end.
    std::istringstream keys(fleet.run(
        node, {"EVAL",
               "local sizes = {string = 'STRLEN', hash = 'HLEN', zset = 'ZCARD'} "
               "local found, cursor = {}, '0' repeat local page = redis.call('SCAN', cursor) "
               "cursor = page[1] for _, key in ipairs(page[2]) do "
               "local size = redis.call(sizes[redis.call('TYPE', key).ok] or 'EXISTS', key) "
               "found[#found + 1] = redis.call('PTTL', key) .. ' ' .. size .. ' ' .. key end "
               "until cursor == '0' return table.concat(found, '\\n')",
               "0"}));
    for (std::string line; std::getline(keys, line);) {
      std::istringstream words(line);
      long long ends_in = 0;
      std::size_t size = 0;
      std::string key;
      const bool is_whole = (words >> ends_in >> size >> std::ws) && std::getline(words, key);
      REQUIRE_MESSAGE(is_whole, line);
      judge(key, ends_in, size);
    }
  }
}

Client start_careful(std::vector<std::string> nodes) {
  ClientOptions options = careful_options_for(std::move(nodes));
  options.lease = options.max_lease = max_lease;
  return start_client(options);
}

/// Callers that time out while they wait, holders that vanish, grants that others release, forces.
void storm(const Client& client, const Client& other, const Fleet& fleet) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = "n" + std::to_string(round);
    auto held = client.lock(name).acquire({.wait = 100ms});
    auto waiting = other.lock(name).async_acquire({.wait = 30ms}).as_future();
    const auto refused = other.lock(name).acquire({.wait = 10ms});
    const int fate = held ? round % 5 : 4;
    if (fate == 0) static_cast<void>(held->detach());  // nobody releases it
    if (fate == 1) static_cast<void>(other.lock(name).attach(held->detach()));
    if (fate == 2) static_cast<void>(Admin(other).force_release(name));
    if (fate == 3) static_cast<void>(held->release());
    inspect(fleet);
    const auto late = waiting.get();
  }
}

}  // namespace

TEST_CASE("after a storm every key on every node has an end, or is one of three that have none") {
  Fleet fleet({.nodes = 3, .persistence = cluster::Persistence::always, .unix_sockets = true});
  {
    const Client client = start_careful(fleet.uris());
    const Client other = start_careful(fleet.uris());
    must(Admin(client).adopt());
    for (const Client* each : {&client, &other}) {
      REQUIRE(eventually([&] {
        inspect(fleet);
        return each->lock("votes").acquire().has_value();
      }));
    }
    storm(client, other, fleet);
    // It is in force, so that nothing is changed but the promises.
    must(Admin(client).set_max_lease(must(Admin(client).marked_set()).value().max_lease));
    inspect(fleet);
    fleet.run(0, {"FLUSHALL"});
    storm(client, other, fleet);
    fleet.restart(1, cluster::Data::empty);
    storm(client, other, fleet);
    const Client twins = start_careful({fleet.uri(0), fleet.unix_uri(0), fleet.uri(1)});
    REQUIRE(eventually([&] {
      return contains(fleet.run(0, {"KEYS", "redlock:fence:identity:*"}), "identity");
    }));
    const Lease held = must(client.lock("a").acquire({.wait = patience}));
    auto left_waiting = other.lock("a").async_acquire({.wait = patience}).as_future();
    REQUIRE(eventually([&] {
      inspect(fleet);
      return fleet.run(2, {"EXISTS", "redlock:line:{a}", "redlock:waiters:{a}"}) == "2";
    }));
    inspect(fleet);
    REQUIRE(eventually([&] {
      const auto lease = client.lock("b").acquire();  // it is not given back before
      const auto forced = Admin(other).force_release("b");
      return lease && forced && forced->outcome == Forced::released;
    }));
    inspect(fleet);
  }
  inspect(fleet);
  for (const DocumentedKey& row : documented_keys) {
    // No clock of these servers moves, so no client leaves a note of that.
    CHECK_MESSAGE((met.contains(&row) || row.begin == "redlock:node:clock"), row.begin);
  }
}

}  // namespace redlock::testing
