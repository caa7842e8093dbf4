// SPDX-License-Identifier: MIT
// A client of nodes with TLS: what it needs for that, what it says of nodes that it cannot trust,
// and of its own files that cannot serve any more. (All certificates are replaced under load by
// tests/repository/operators_day.sh.)
#include "integration/api_event_log.hpp"
#include "support/tls_nodes.hpp"

namespace redlock::testing {
namespace {

const TlsFiles& files() {
  return TlsFiles::get();
}

ClientOptions tls_options(std::vector<std::string> nodes,
                          const TlsOptions& tls = TlsFiles::get().trusting()) {
  ClientOptions options = options_for(std::move(nodes));
  options.tls = tls;
  return options;
}

std::string problem_of(const ClientOptions& options) {
  const auto client = Client::create(options);
  CHECK(code_of(client) == Errc::invalid_argument);
  return client.error().message;
}

}  // namespace

TEST_CASE("locks are taken, waited for, renewed and given back through TLS") {
  if (!server_has_tls()) return;
  Fleet fleet({.nodes = 3, .tls = files().of(files().node, true), .password = "secret"});
  const Client client = start_client(tls_options(fleet.uris(), files().complete()));
  const Client other = start_client(tls_options(fleet.uris(), files().complete()));
  Lease first = must(client.lock("a").acquire());
  CHECK(code_of(other.lock("a").acquire()) == Errc::contended);
  auto waiting = other.lock("a").async_acquire({.wait = forever}).as_future();
  must(first.confirm());
  must(first.release());
  Lease second = must(get_soon(waiting));
  CHECK(second.token() > first.token());
  // With one node down, and then with it back and another one down.
  fleet.kill(0);
  must(second.release());
  must(must(client.lock("a").acquire()).release());
  fleet.restart(0);
  fleet.kill(1);
  CHECK(eventually([&] { return client.lock("a").acquire().has_value(); }));
}

TEST_CASE("nodes with TLS, without it, and one that cannot be trusted may be of one set") {
  if (!server_has_tls()) return;
  const auto other = files().authority.issue("other", {.names = {"DNS:other.example"}});
  const Fleet with({.nodes = 2, .tls = files().of(files().node)});
  const Fleet without({.nodes = 1});
  const Fleet bad({.nodes = 2, .tls = files().of(other)});
  const Client client =
      start_client(tls_options({with.uri(0), with.uri(1), without.uri(0), bad.uri(0), bad.uri(1)}));
  for (int i = 0; i < 50; ++i) {  // on the client's own thread, and on this one
    must(must(get_soon(client.lock("a").async_acquire({.wait = patience}))).release());
    must(must(client.lock("a").acquire({.wait = patience})).release());
  }
}

TEST_CASE("a certificate for another name ends a call at once, unless that name is given") {
  if (!server_has_tls()) return;
  const auto named = files().authority.issue("named", {.names = {"DNS:node.example"}});
  const Fleet fleet({.nodes = 1, .tls = files().of(named)});
  ClientOptions options = tls_options(fleet.uris());
  const auto refused = start_client(options).lock("a").acquire({.wait = forever});
  REQUIRE(code_of(refused) == Errc::no_quorum);
  CHECK(refused.error().is_configuration());
  CHECK(refused.error().votes[0].cause == Cause::tls);
  CHECK(contains(refused.error().message,
                 "its certificate is not for 127.0.0.1 (it is for node.example)"));
  options.tls.name = "node.example";
  CHECK(start_client(options).lock("a").acquire().has_value());
  options.nodes[0] += "?name=Other.example";  // goes before that for all
  const auto refused_again = start_client(options).lock("a").acquire();
  REQUIRE(code_of(refused_again) == Errc::no_quorum);
  CHECK(contains(refused_again.error().message, "its certificate is not for other.example"));
  options.tls.name.clear();
  options.nodes[0] = fleet.uri(0) + "?name=node.example";
  CHECK(start_client(options).lock("a").acquire().has_value());
}

TEST_CASE("what is wrong with the options for TLS is said before anything is sent") {
  const auto create_with = [](const TlsOptions& tls, const char* node = "rediss://localhost:1") {
    return problem_of(tls_options({node}, tls));
  };
  CHECK(create_with({.ca = "/nonexistent"}) ==
        "tls.ca: /nonexistent cannot be read: No such file or directory");
  CHECK(contains(create_with({.certificate = files().client.certificate.string()}),
                 "tls.certificate is given without tls.key"));
  CHECK(create_with({.name = "*.example"}) ==
        "tls.name, '*.example', is neither a host name nor an address");
  CHECK(create_with({.name = ".example"}) ==
        "tls.name, '.example', begins with a dot, which would stand for every name that ends like "
        "it; write one whole name that the certificate has");
  CHECK(contains(create_with({.name = std::string("::1\0.example", 12)}), "neither a host name"));
  CHECK(contains(create_with({}, "rediss://.example"), "the host begins with a dot"));
  CHECK(contains(create_with({.key = files().client.key.string()}),
                 "tls.key is given without tls.certificate"));
  CHECK(contains(create_with(files().trusting(), "redis://localhost:1"),
                 "tls.ca is given, but the URI of no node begins with rediss://"));
}

TEST_CASE("an examination tells of certificates that end within days, and of a key for everybody") {
  if (!server_has_tls()) return;
  using std::chrono::hours;
  const std::vector<std::string> names{"IP:127.0.0.1"};
  const auto examine = [](const cluster::IssuedCertificate& node,
                          const cluster::IssuedCertificate& own) {
    const Fleet fleet({.nodes = 1, .tls = files().of(node, true)});
    auto tls = files().trusting();
    tls.certificate = own.certificate.string();
    tls.key = own.key.string();
    const Client client = start_client(tls_options(fleet.uris(), tls));
    Examinations examinations(client);
    static_cast<void>(must(examinations.next()));
    auto examination = must(examinations.next());
    REQUIRE(examination.nodes[0].answered());
    REQUIRE(examination.nodes[0].certificate);
    REQUIRE(examination.client_certificate);
    return examination;
  };
  const auto said = [](const std::vector<Problem>& problems) {
    std::string all;
    for (const auto& problem : problems) all += problem.what + "\n";
    return all;
  };
  // Made for a day, and young: there is nothing to say.
  auto found = examine(files().node, files().client);
  CHECK_FALSE(contains(said(found.nodes[0].problems), "certificate"));
  CHECK_FALSE(contains(said(found.problems), "tls."));
  CHECK(found.client_certificate->ends > found.client_certificate->begins + hours(24));

  const auto own =
      files().authority.issue("own", {.valid_from = -hours(900), .valid_until = hours(100)});
  found = examine(files().authority.issue("soon", {names, -hours(80), std::chrono::minutes(1230)}),
                  own);
  CHECK(contains(said(found.nodes[0].problems), "its certificate ends on 20"));
  CHECK(contains(said(found.nodes[0].problems), " UTC, in 20 hours, and then no client connects"));
  CHECK(contains(said(found.problems), "tls.certificate: the certificate of this client ends on "));
  CHECK(contains(said(found.problems), " UTC, in 4 days, and then nodes refuse this client"));
  CHECK(found.fitness() == Fitness::unsafe);  // the node is new, and keeps nothing
  CHECK(found.nodes[0].problems.back().severity == Severity::warning);

  std::filesystem::permissions(own.key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  found = examine(files().node, own);
  CHECK(contains(said(found.problems), own.key.string() + " can be read by every user"));
  // That of the authority ends in a day, before that of the node.
  found = examine(files().authority.issue("long", {names, -hours(1), hours(100)}), own);
  CHECK(found.nodes[0].certificate->of_authority);
}

TEST_CASE("files that cannot serve are a warning of each node, and no lock is lost by them") {
  if (!server_has_tls()) return;
  const Fleet fleet({.nodes = 3, .tls = files().of(files().node, true)});
  const TemporaryDirectory directory("redlock-rotating");
  TlsOptions tls = files().trusting();
  tls.certificate = (directory.path() / "client.crt").string();
  tls.key = (directory.path() / "client.key").string();
  place(tls.certificate, {files().client.certificate});
  place(tls.key, {files().client.key});
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = tls_options(fleet.uris(), tls);
  options.observer = log;
  const Client client = start_client(options);
  const auto soon_warned = [&](const std::string& sentence) {
    return eventually([&] {
      run_on_all(fleet, {"CLIENT", "KILL", "TYPE", "pubsub"});  // all wait for wake-ups
      must(client.lock("seat").acquire({.wait = patience}));
      const auto last = log->lines("up ").back();
      return sentence.empty() ? !contains(last, "tls.") : contains(last, sentence);
    });
  };
  const auto renewed = files().authority.issue("renewed", {});
  place(tls.certificate, {renewed.certificate});
  const std::string sentence = "tls.key: " + tls.key + " is not the key of";
  CHECK(soon_warned(sentence));
  const auto examination = must(Admin(client).examine());
  CHECK(examination.fitness() != Fitness::healthy);
  CHECK(std::ranges::any_of(examination.problems, [&](const Problem& problem) {
    return contains(problem.what, sentence);
  }));
  place(tls.key, {renewed.key});
  CHECK(soon_warned(""));
}

TEST_CASE("the environment has the options for TLS") {
  const ScopedVariable ca("REDLOCK_TLS_CA", "one");
  const ScopedVariable certificate("REDLOCK_TLS_CERT", "two");
  const ScopedVariable key("REDLOCK_TLS_KEY", "three");
  const ScopedVariable name("REDLOCK_TLS_NAME", "four");
  const ClientOptions options = must(ClientOptions::from_env("rediss://localhost:1"));
  CHECK(options.tls.ca == "one");
  CHECK(options.tls.certificate == "two");
  CHECK(options.tls.key == "three");
  CHECK(options.tls.name == "four");
}

}  // namespace redlock::testing
