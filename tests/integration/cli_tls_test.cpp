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

/// The three files, as options or in the environment.
Variables files_variables(const std::filesystem::path& ca, const std::filesystem::path& certificate,
                          const std::filesystem::path& key) {
  return {{"REDLOCK_TLS_CA", ca.string()},
          {"REDLOCK_TLS_CERT", certificate.string()},
          {"REDLOCK_TLS_KEY", key.string()}};
}
Arguments with_files(const Arguments& arguments) {
  return appended(arguments,
                  {"--tls-ca", files().authority.certificate().string(), "--tls-cert",
                   files().client.certificate.string(), "--tls-key", files().client.key.string()});
}

}  // namespace

TEST_CASE("every subcommand works through TLS") {
  if (!server_has_tls()) return;
  const Fleet fleet({.nodes = 3, .tls = files().of(files().node, true)});
  const auto run = [](const Fleet& nodes, const Arguments& arguments, int status = 0,
                      const Variables& variables = {}) {
    const auto finished = redlock(nodes, with_files(arguments), variables);
    CHECK_MESSAGE(finished.status == status, arguments[0], ": ", finished.out, finished.err);
    return finished.out;
  };
  run(fleet, {"adopt"});
  // They are new, and nothing else is wrong.
  CHECK(contains(run(fleet, {"doctor"}, 2, with_quarantine), "votes in"));
  for (const Arguments& look : looks) {
    run(fleet, look, look.front() == "doctor" ? 2 : 0, with_quarantine);
  }
  const auto& nodes = nodes_with_tls();
  const auto owner = field(run(nodes, {"acquire", "a"}), "owner");
  CHECK(contains(run(nodes, {"list"}), "a"));
  CHECK(contains(run(nodes, {"status", "a"}), "held"));
  run(nodes, {"release", "a", "--owner", owner});
  run(nodes, {"acquire", "a"});
  run(nodes, {"release", "a", "--force"});
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
  const auto finished =
      exits_with(0, redlock(fleet, exec_a({}, {"echo", "done"}),
                            files_variables(directory / "authority.crt", directory / "client.crt",
                                            directory / "client.key")));
  CHECK(finished.out == "done\n");
}

TEST_CASE("bench makes its faults in front of nodes with TLS, too") {
  if (!server_has_tls()) return;
  for (const char* scenario : {"healthy", "minority-hung"}) {
    const auto finished =
        redlock(nodes_with_tls(),
                with_files({"bench", "--scenario", scenario, "--duration", "300ms", "--lease",
                            "10s", "--concurrency", "2", "--node-timeout", "2s"}));
    CHECK_MESSAGE(finished.status == 0, finished.out, finished.err);
    CHECK_FALSE(contains(finished.out, "certificate"));
  }
}

TEST_CASE("a node that cannot be trusted is a matter of configuration, and doctor says which") {
  if (!server_has_tls()) return;
  const auto ca = files().authority.certificate().string();
  const auto acquired = exits_with(78, redlock(nodes_with_tls(), {"acquire", "c", "--tls-ca", ca}));
  CHECK(contains(acquired.err, "it wants a certificate of this client"));
  const auto doctor = exits_with(2, redlock(nodes_with_tls(), {"doctor", "--tls-ca", ca}));
  CHECK(contains(unwrapped(doctor.out), "its TLS does not suit this client"));
  const auto named = exits_with(
      78, redlock(nodes_with_tls(), with_files({"acquire", "c", "--tls-name", "other.example"})));
  CHECK(contains(named.err, "its certificate is not for other.example"));
}

TEST_CASE("doctor says when certificates end, those of the nodes and that of the client") {
  if (!server_has_tls()) return;
  const auto examination = in_json(nodes_with_tls(), with_files({"doctor"}));
  for (const auto& node : examination["nodes"]) {
    CHECK(node["certificate"]["of_authority"].is_boolean());
    CHECK(node["certificate"]["begins"] < node["certificate"]["ends"]);
  }
  CHECK(examination["client_certificate"]["of_authority"] == false);
}

}  // namespace redlock::testing
