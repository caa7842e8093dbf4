// SPDX-License-Identifier: MIT
// Faults of the network between a client and nodes with TLS, where nothing on the way can tell a
// request from a reply: of a minority they change nothing, of two of three nodes each ends what is
// under way, with a cause that says what is known, leaves no lock behind, and is over when the
// network is well again.
#include "integration/api_fixture.hpp"
#include "support/proxy.hpp"
#include "support/tls_nodes.hpp"

namespace redlock::testing {
namespace {

struct NetworkFault {
  const char* name;
  std::function<void(Proxy&)> begin;
  std::vector<Cause> causes;  // of the votes of the nodes behind it
  std::chrono::milliseconds node_timeout = 10s;
};

std::vector<NetworkFault> network_faults() {
  const std::vector<Cause> late{Cause::timed_out};
  const std::vector<Cause> lost{Cause::connection_lost, Cause::connection_failed};
  const std::vector<Cause> not_trusted{Cause::protocol_error, Cause::tls};
  const auto spoil = [](std::string rubbish) {
    return [rubbish = std::move(rubbish)](Proxy& proxy) { proxy.spoil_replies(rubbish); };
  };
  return {
      {"late", [](Proxy& proxy) { proxy.delay(1500ms); }, late, 500ms},
      {"byte by byte", [](Proxy& proxy) { proxy.drip(50ms); }, late, 500ms},
      {"no requests", [](Proxy& proxy) { proxy.hold_requests(); }, late, 500ms},
      {"no replies", [](Proxy& proxy) { proxy.hold_replies(); }, late, 500ms},
      {"neither", [](Proxy& proxy) { proxy.hang(); }, late, 500ms},
      {"cut amid a reply", [](Proxy& proxy) { proxy.cut_replies(20); }, lost},
      {"reset", [](Proxy& proxy) { proxy.refuse(); }, lost},
      {"rubbish that is no record", spoil("rubbish, for as long as it likes\r\n"), not_trusted},
      {"a record, which nobody encrypted who has the key",
       spoil(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x')), not_trusted},
  };
}

/// Three nodes, each behind a proxy. The lease is longer than anything is waited for here: what is
/// free again was released.
struct TlsArena {
  Fleet fleet{{.nodes = 3, .tls = TlsFiles::get().of(TlsFiles::get().node)}};
  Proxies proxies = proxies_of(fleet);

  [[nodiscard]] Client start(std::chrono::milliseconds node_timeout) const {
    ClientOptions options = options_for({});
    for (const auto& proxy : proxies) options.nodes.push_back(proxy->tls_uri());
    options.tls = TlsFiles::get().trusting();
    options.lease = 60s;
    options.node_timeout = node_timeout;
    return start_client(options);
  }

  /// All three nodes grant a lock. A machine that stood still has another try.
  [[nodiscard]] bool soon_all_vote(const Client& client) const {
    return eventually([&] {
      const auto lease = client.lock("all").acquire();
      return lease && nodes_with_lock(fleet, "all") == 3;
    });
  }
};

void check(const TlsArena& arena, const NetworkFault& fault) {
  CAPTURE(fault.name);
  const Client client = arena.start(fault.node_timeout);
  REQUIRE(arena.soon_all_vote(client));
  Lease held = must(client.lock("held").acquire({.wait = patience}));

  // One of three changes nothing, two of them leave no quorum.
  fault.begin(*arena.proxies[0]);
  CHECK(eventually([&] { return client.lock("minority").acquire().has_value(); }));
  fault.begin(*arena.proxies[1]);
  const auto refused = client.lock("seat").acquire();
  REQUIRE_FALSE(refused.has_value());
  const Error& error = refused.error();
  CAPTURE(error.message);
  CHECK(error.code == Errc::no_quorum);
  REQUIRE(error.votes.size() == 3);
  std::size_t known = 0;  // of one of them at the least it is known why
  for (const NodeVote& vote : {error.votes[0], error.votes[1]}) {
    CHECK((vote.vote == Vote::unavailable || vote.vote == Vote::pending));
    if (vote.vote != Vote::unavailable) continue;
    CHECK_MESSAGE(std::ranges::count(fault.causes, vote.cause) == 1, to_string(vote.cause));
    ++known;
  }
  CHECK(known > 0);

  const auto deadline = BootClock::now() + 50ms;
  const Errc end = code_of(
      get_soon(client.lock("other").async_acquire({.wait = forever, .deadline = deadline})));
  CHECK((end == Errc::timed_out || end == Errc::no_quorum));
  CHECK(code_of(held.confirm()) == Errc::no_quorum);
  CHECK(must(held.release()) == Released::unknown);

  for (const std::size_t node : {0U, 1U}) arena.proxies[node]->pass();
  for (const char* name : {"minority", "seat", "other", "held"}) {
    CAPTURE(name);
    CHECK(soon_free_everywhere(arena.fleet, name));
  }
  CHECK(arena.soon_all_vote(client));
}

}  // namespace

TEST_CASE("through TLS, each fault ends what is under way with its cause, and leaves no lock") {
  if (!server_has_tls()) return;
  const TlsArena arena;
  for (const NetworkFault& fault : network_faults()) check(arena, fault);

  // A network with jitter is as good as another one.
  const Client client = arena.start(10s);
  REQUIRE(arena.soon_all_vote(client));
  for (const auto& proxy : arena.proxies) proxy->delay(1ms, 20ms);
  for (int i = 0; i < 10; ++i) {
    Lease lease = must(client.lock("seat").acquire({.wait = patience}));
    CHECK(must(lease.release()) == Released::released);
  }
  CHECK(arena.soon_all_vote(client));
}

TEST_CASE("through TLS, nobody on the way reads names, scripts or passwords") {
  if (!server_has_tls()) return;
  const auto seen_on_the_way = [](bool tls) {
    const std::optional<cluster::FleetTls> files_of_node =
        tls ? std::optional(TlsFiles::get().of(TlsFiles::get().node)) : std::nullopt;
    const Fleet fleet({.nodes = 1, .tls = files_of_node, .password = "open-sesame"});
    Proxy proxy(fleet.port(0));
    proxy.record();
    std::string uri = tls ? proxy.tls_uri() : proxy.uri();
    uri.insert(uri.find("127."), ":open-sesame@");
    ClientOptions options = options_for({uri});
    if (tls) options.tls = TlsFiles::get().trusting();
    must(must(start_client(options).lock("row-A-seat-5").acquire()).release());
    return proxy.recorded();
  };
  const std::string plain = seen_on_the_way(false);
  const std::string encrypted = seen_on_the_way(true);
  CHECK(encrypted.size() > 1'000);
  for (const char* word : {"row-A-seat-5", "open-sesame", "EVALSHA", "redlock:", "CLIENT"}) {
    CAPTURE(word);
    CHECK(contains(plain, word));
    CHECK_FALSE(contains(encrypted, word));
  }
}

}  // namespace redlock::testing
