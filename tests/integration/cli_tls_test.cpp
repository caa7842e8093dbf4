// SPDX-License-Identifier: MIT
// The command with nodes that have TLS: each subcommand, by options and by the environment.
#include "cli_process.hpp"
#include "support/shell.hpp"
#include "support/tls_nodes.hpp"

namespace redlock::testing {
namespace {

const TlsFiles& files() {
  return TlsFiles::get();
}

const Fleet& nodes_with_tls() {
  static const Fleet fleet({.nodes = 3, .tls = files().of(files().node, true)});
  return fleet;
}

Arguments with_files(Arguments arguments) {
  arguments.insert(arguments.end(),
                   {"--tls-ca", files().authority.certificate().string(), "--tls-cert",
                    files().client.certificate.string(), "--tls-key", files().client.key.string()});
  return arguments;
}

Variables environment() {
  Variables variables = nodes_variable(nodes_with_tls().uris());
  variables["REDLOCK_TLS_CA"] = files().authority.certificate().string();
  variables["REDLOCK_TLS_CERT"] = files().client.certificate.string();
  variables["REDLOCK_TLS_KEY"] = files().client.key.string();
  return variables;
}

}  // namespace

TEST_CASE("every subcommand works through TLS") {
  if (!server_has_tls()) return;
  const Fleet fleet({.nodes = 3, .tls = files().of(files().node, true)});
  Variables nodes = nodes_variable(fleet.uris());
  nodes.erase("REDLOCK_QUARANTINE");
  const auto run = [&](const Arguments& arguments, int status = 0) {
    Arguments all = with_files(arguments);
    all.insert(all.end(), {"--node-timeout", "10s"});
    const auto finished = redlock(all, nodes);
    CHECK_MESSAGE(finished.status == status, arguments[0], ": ", finished.out, finished.err);
    return finished.out;
  };
  run({"adopt"});
  CHECK(contains(run({"doctor"}, 2), "votes in"));  // they are new, and nothing else is wrong
  nodes["REDLOCK_NODES"] = nodes_variable(nodes_with_tls().uris())["REDLOCK_NODES"];
  nodes["REDLOCK_QUARANTINE"] = "off";
  const auto owner = field(run({"acquire", "a"}), "owner");
  CHECK(contains(run({"list"}), "a"));
  CHECK(contains(run({"status", "a"}), "held"));
  run({"release", "a", "--owner", owner});
  run({"acquire", "a"});
  run({"release", "a", "--force"});
}

TEST_CASE("the certificates of the script for the compose file serve nodes and clients") {
  if (!server_has_tls()) return;
  if (shell("command -v openssl").status != 0) return;
  const TemporaryDirectory made("redlock-tls");
  const auto directory = made.path();
  const auto script = shell(quoted(std::string(REDLOCK_SOURCE_DIR) + "/cluster/certificates.sh") +
                            " " + quoted(directory.string()));
  REQUIRE_MESSAGE(script.status == 0, script.output);
  const Fleet fleet({.nodes = 1,
                     .tls = cluster::FleetTls{.authority = directory / "authority.crt",
                                              .certificate = directory / "node.crt",
                                              .key = directory / "node.key",
                                              .clients_need_certificates = true}});
  Variables variables = nodes_variable(fleet.uris());
  variables["REDLOCK_TLS_CA"] = (directory / "authority.crt").string();
  variables["REDLOCK_TLS_CERT"] = (directory / "client.crt").string();
  variables["REDLOCK_TLS_KEY"] = (directory / "client.key").string();
  const auto acquired = redlock({"acquire", "a", "--node-timeout", "10s"}, variables);
  CHECK_MESSAGE(acquired.status == 0, acquired.err);
}

TEST_CASE("exec takes files and nodes from the environment") {
  if (!server_has_tls()) return;
  const auto finished =
      redlock({"exec", "b", "--node-timeout", "10s", "--", "echo", "done"}, environment());
  CHECK_MESSAGE(finished.status == 0, finished.err);
  CHECK(finished.out == "done\n");
}

TEST_CASE("bench makes its faults in front of nodes with TLS, too") {
  if (!server_has_tls()) return;
  for (const char* scenario : {"healthy", "minority-hung"}) {
    const auto finished =
        redlock(with_files({"bench", "--scenario", scenario, "--duration", "300ms", "--lease",
                            "10s", "--concurrency", "2", "--node-timeout", "2s"}),
                nodes_variable(nodes_with_tls().uris()));
    CHECK_MESSAGE(finished.status == 0, finished.out, finished.err);
    CHECK_FALSE(contains(finished.out, "certificate"));
  }
}

TEST_CASE("a node that cannot be trusted is a matter of configuration, and doctor says which") {
  if (!server_has_tls()) return;
  Variables without = nodes_variable(nodes_with_tls().uris());
  const auto ca = files().authority.certificate().string();
  const auto acquired = redlock({"acquire", "c", "--tls-ca", ca, "--node-timeout", "10s"}, without);
  CHECK(acquired.status == 78);
  CHECK(contains(acquired.err, "it wants a certificate of this client"));
  const auto doctor = redlock({"doctor", "--tls-ca", ca, "--node-timeout", "10s"}, without);
  CHECK(doctor.status == 2);
  CHECK(contains(unwrapped(doctor.out), "its TLS does not suit this client"));
  const auto named =
      redlock(with_files({"acquire", "c", "--tls-name", "other.example", "--node-timeout", "10s"}),
              without);
  CHECK(named.status == 78);
  CHECK(contains(named.err, "its certificate is not for other.example"));
}

TEST_CASE("doctor says when certificates end, those of the nodes and that of the client") {
  if (!server_has_tls()) return;
  const auto found = redlock(with_files({"doctor", "-o", "json", "--node-timeout", "10s"}),
                             nodes_variable(nodes_with_tls().uris()));
  const auto examination = nlohmann::json::parse(found.out);
  for (const auto& node : examination["nodes"]) {
    CHECK(node["certificate"]["of_authority"].is_boolean());
    CHECK(node["certificate"]["begins"] < node["certificate"]["ends"]);
  }
  CHECK(examination["client_certificate"]["of_authority"] == false);
}

TEST_CASE("a name for certificates that begins with a dot is refused, wherever it is given") {
  const auto refused = [](Arguments more, Variables variables = {}) {
    Arguments arguments{"acquire", "d", "--nodes"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto finished = redlock(arguments, variables);
    CHECK(finished.status == 64);
    return finished.err;
  };
  CHECK(contains(refused({"rediss://localhost:1", "--tls-name", ".example"}), "begins with a dot"));
  CHECK(contains(refused({"rediss://localhost:1"}, {{"REDLOCK_TLS_NAME", ".example"}}),
                 "begins with a dot"));
  CHECK(contains(refused({"rediss://localhost:1?name=.example"}), "begins with a dot"));
  CHECK(contains(refused({"rediss://.example:1"}), "begins with a dot"));
}

TEST_CASE("a file that cannot be read is one sentence") {
  const auto finished =
      redlock({"acquire", "d", "--nodes", "rediss://localhost:1", "--tls-ca", "/nonexistent"});
  CHECK(finished.status == 64);
  CHECK(finished.err ==
        "redlock: tls.ca: /nonexistent cannot be read: No such file or directory\n");
}

}  // namespace redlock::testing
