// SPDX-License-Identifier: MIT
// Authority, nodes' certificates and clients' certificate are replaced one after the other, as
// docs/tls.md says, while a lease is held and locks are taken and given back. Every node is made to
// connect anew each time.
#include <initializer_list>

#include "integration/api_event_log.hpp"
#include "support/tls_nodes.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;
using cluster::CertificateAuthority;
using cluster::IssuedCertificate;

/// Files at one place, whatever is in them.
struct Files {
  explicit Files(const fs::path& beginning)
      : ca(beginning.string() + "-ca.pem"),
        own{beginning.string() + ".crt", beginning.string() + ".key"} {}
  void trust(std::initializer_list<fs::path> authorities) const { place(ca, authorities); }
  void show(const IssuedCertificate& issued) const {
    place(own.certificate, {issued.certificate});
    place(own.key, {issued.key});
  }
  fs::path ca;
  IssuedCertificate own;
};

/// Three nodes that want certificates; each has files of its own.
struct RotatingNodes {
  TemporaryDirectory directory{"redlock-rotating"};
  TemporaryDirectory directory_of_next{"redlock-rotating"};
  CertificateAuthority old_authority{directory.path()};
  CertificateAuthority new_authority{directory_of_next.path()};
  std::vector<Files> files;
  Files client{directory.path() / "the-client"};
  std::optional<Fleet> fleet;

  RotatingNodes() {
    cluster::FleetOptions options{.nodes = 3, .persistence = cluster::Persistence::always};
    for (std::size_t node = 0; node < 3; ++node) {
      const auto name = "node-" + std::to_string(node);
      const Files& own = files.emplace_back(directory.path() / ("the-" + name));
      own.trust({old_authority.certificate()});
      own.show(of_node(old_authority, name));
      options.node_settings[node] = {"tls-ca-cert-file " + own.ca.string(),
                                     "tls-cert-file " + own.own.certificate.string(),
                                     "tls-key-file " + own.own.key.string()};
    }
    options.tls = cluster::FleetTls{files[0].ca, files[0].own.certificate, files[0].own.key, true};
    client.trust({old_authority.certificate()});
    client.show(old_authority.issue("client", {}));
    fleet.emplace(options);
  }
  static IssuedCertificate of_node(const CertificateAuthority& authority, const std::string& name) {
    return authority.issue(name, {.names = {"IP:127.0.0.1"}});
  }
  [[nodiscard]] ClientOptions options(const std::string& name) const {
    ClientOptions options = options_for(fleet->uris());
    options.client_name = name;
    options.tls = {.ca = client.ca.string(),
                   .certificate = client.own.certificate.string(),
                   .key = client.own.key.string()};
    return options;
  }
};

/// Takes a lock and gives it back, again and again.
class Worker {
 public:
  Worker(const Client& client, const std::string& name)
      : thread_([this, lock = client.lock(name)](const std::stop_token& over) mutable {
          while (!over.stop_requested() && succeeds(lock)) ++cycles_;
        }) {}
  [[nodiscard]] int cycles() const { return cycles_; }

 private:
  static bool succeeds(RedLock& lock) {
    auto lease = lock.acquire({.wait = patience});
    CHECK_MESSAGE(lease.has_value(), lease.error().message);
    if (!lease) return false;
    // A release may be on its way with the connection that ends: the next acquire shows that it was
    // repeated.
    const auto released = lease->release();
    CHECK_MESSAGE(released.has_value(), released.error().message);
    return released.has_value();
  }

  std::atomic<int> cycles_{0};
  std::jthread thread_;  // which its destructor stops
};

void kill_connections(const Fleet& fleet, std::size_t node) {
  fleet.run(node, {"CLIENT", "KILL", "TYPE", "pubsub"});  // they are subscribed to wake-ups
}

/// As CONFIG SET does that names a file which it had before: Redis reads it again.
void read_again(const Fleet& fleet, std::size_t node, const char* setting, const fs::path& file) {
  REQUIRE(fleet.run(node, {"CONFIG", "SET", setting, file.string()}) == "OK");
}

/// What a client with these options says of all nodes.
std::string refusal(const ClientOptions& options) {
  const Client client = start_client(options);
  const auto lease = client.lock("refused").acquire({.wait = patience});
  REQUIRE(code_of(lease) == Errc::no_quorum);
  for (const auto& vote : lease.error().votes) {
    if (vote.vote == Vote::unavailable) CHECK(vote.cause == Cause::tls);
  }
  return lease.error().message;
}

}  // namespace

TEST_CASE("authority and certificates are rotated under load, and no lease is lost") {
  if (!server_has_tls()) return;
  RotatingNodes nodes;
  Fleet& fleet = *nodes.fleet;
  const std::array logs{std::make_shared<EventLog>(), std::make_shared<EventLog>()};
  const auto start = [&](const char* name, const std::shared_ptr<EventLog>& log) {
    auto options = nodes.options(name);
    options.observer = log;
    return start_client(options);
  };
  const Client holder = start("holder", logs[0]);
  const Client others = start("worker", logs[1]);
  // How often each client has connected to the node.
  const auto connections_of = [&](std::size_t node) {
    const std::string up = "up " + fleet.uri(node) + " ";
    return std::array{logs[0]->count(up), logs[1]->count(up)};
  };
  const auto await_connections = [&](std::size_t node, const std::array<std::size_t, 2>& before) {
    const std::string up = "up " + fleet.uri(node) + " ";
    REQUIRE(logs[0]->soon_has(up, before[0] + 1));
    REQUIRE(logs[1]->soon_has(up, before[1] + 1));
  };
  for (std::size_t node = 0; node < fleet.size(); ++node) await_connections(node, {0, 0});
  Lease held = must(holder.lock("held").acquire({.lease = 20s, .renewal = Renewal::always}));
  const auto token = held.token();
  std::optional<Worker> first(std::in_place, others, "first");
  std::optional<Worker> second(std::in_place, others, "second");

  const auto await_work = [&] {
    const auto cycles = [&] { return std::min(first->cycles(), second->cycles()); };
    const int before = cycles();
    REQUIRE(eventually([&] { return cycles() >= before + 3; }));
    REQUIRE(held.confirm().has_value());
    REQUIRE(logs[0]->count("lost ") == 0);
  };
  const auto at_each_node = [&](const char* what, const auto& step) {
    for (std::size_t node = 0; node < fleet.size(); ++node) {
      INFO(what, " ", node);
      const auto before = connections_of(node);
      step(node);
      await_connections(node, before);
      await_work();
    }
  };
  const auto kill = [&](std::size_t node) { kill_connections(fleet, node); };
  const auto old_ca = nodes.old_authority.certificate();
  const auto new_ca = nodes.new_authority.certificate();

  // Who is to trust both does so before anybody shows anything new.
  nodes.client.trust({old_ca, new_ca});
  at_each_node("both authorities", [&](std::size_t node) {
    nodes.files[node].trust({old_ca, new_ca});
    read_again(fleet, node, "tls-ca-cert-file", nodes.files[node].ca);
    kill(node);
  });
  const auto client_of_before = nodes.old_authority.issue("client-of-before", {});
  nodes.client.show(nodes.new_authority.issue("client", {}));
  at_each_node("certificates of clients", kill);
  at_each_node("certificates of nodes", [&](std::size_t node) {
    nodes.files[node].show(
        RotatingNodes::of_node(nodes.new_authority, "node-" + std::to_string(node)));
    read_again(fleet, node, "tls-cert-file", nodes.files[node].own.certificate);
    kill(node);
  });
  nodes.client.trust({new_ca});
  at_each_node("the new authority alone", [&](std::size_t node) {
    nodes.files[node].trust({new_ca});
    fleet.restart(node);  // this does as well
  });

  first.reset();
  second.reset();
  CHECK(held.valid());
  CHECK(held.token() == token);
  CHECK(must(held.release()) == Released::released);
  CHECK(logs[0]->count("lost ") == 0);
  // The authority of before is over, on both sides.
  auto outdated = nodes.options("outdated");
  outdated.tls.certificate = client_of_before.certificate.string();
  outdated.tls.key = client_of_before.key.string();
  CHECK(contains(refusal(outdated), "it refuses the certificate of this client"));
  outdated = nodes.options("outdated");
  outdated.tls.ca = old_ca.string();
  CHECK(contains(refusal(outdated), "from an authority that is not trusted here"));
  nodes.files[0].show(RotatingNodes::of_node(nodes.old_authority, "node-0"));
  fleet.restart(0);
  const auto examination = must(Admin(holder).examine());
  CHECK(examination.nodes[0].trouble.cause == Cause::tls);
  CHECK(examination.nodes[1].reachable());
}

TEST_CASE("files that cannot serve are a warning of each node, and no lock is lost by them") {
  if (!server_has_tls()) return;
  const RotatingNodes nodes;
  const auto log = std::make_shared<EventLog>();
  auto options = nodes.options("holder");
  options.observer = log;
  const Client client = start_client(options);
  const auto soon_warned = [&](const std::string& sentence) {
    return eventually([&] {
      for (std::size_t node = 0; node < 3; ++node) kill_connections(*nodes.fleet, node);
      must(client.lock("seat").acquire({.wait = patience}));
      const auto last = log->lines("up ").back();
      return sentence.empty() ? !contains(last, "tls.") : contains(last, sentence);
    });
  };
  const auto renewed = nodes.old_authority.issue("renewed", {});
  place(nodes.client.own.certificate, {renewed.certificate});
  const std::string sentence = "tls.key: " + nodes.client.own.key.string() + " is not the key of";
  CHECK(soon_warned(sentence));
  const auto examination = must(Admin(client).examine());
  CHECK(examination.fitness() != Fitness::healthy);
  CHECK(std::ranges::any_of(examination.problems, [&](const Problem& problem) {
    return contains(problem.what, sentence);
  }));
  place(nodes.client.own.key, {renewed.key});
  CHECK(soon_warned(""));
}

}  // namespace redlock::testing
