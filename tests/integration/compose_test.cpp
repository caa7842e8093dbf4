// SPDX-License-Identifier: MIT
//
// docker-compose.yml as Docker's own tool understands it: five nodes, their ports, their
// configuration, and what the documents say about them. Nothing is started here. Without
// docker-compose there is nobody to ask: the test then says so, and ctest reports it as skipped.
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "support/shell.hpp"
#include "support/text.hpp"

using nlohmann::json;
using redlock::testing::contains;
using redlock::testing::quoted;
using redlock::testing::shell;
using redlock::testing::text_in;

namespace {

namespace fs = std::filesystem;

const fs::path kTree = REDLOCK_SOURCE_DIR;
const std::vector<std::string> kNodes = {"node-1", "node-2", "node-3", "node-4", "node-5"};
const std::vector<std::string> kTlsNodes = {"tls-1", "tls-2", "tls-3", "tls-4", "tls-5"};

/// As cluster/users.acl has it.
std::string password_of(const std::string& user) {
  std::smatch match;
  const auto text = text_in(kTree / "cluster/users.acl");
  REQUIRE(std::regex_search(text, match, std::regex("user " + user + " on >(\\S+)")));
  return match[1];
}

// The first version prints YAML only, and brings Python's YAML reader with it.
json ask_compose() {
  const auto config = fmt::format("docker-compose -f {} --profile demo --profile tls config",
                                  quoted((kTree / "docker-compose.yml").string()));
  auto answer = shell(config + " --format json 2>/dev/null");
  if (!json::accept(answer.output)) {
    const auto plain = shell(config);
    INFO(plain.output);
    REQUIRE(plain.status == 0);
    answer = shell(config +
                   " 2>/dev/null | /usr/bin/python3 -c 'import json, sys, yaml; "
                   "json.dump(yaml.safe_load(sys.stdin), sys.stdout)'");
  }
  INFO(answer.output);
  REQUIRE(json::accept(answer.output));
  return json::parse(answer.output);
}

// The whole file, or nothing where docker-compose is not installed.
const std::optional<json>& compose_file() {
  static const auto file = []() -> std::optional<json> {
    if (shell("command -v docker-compose").status == 0) return ask_compose();
    fmt::print(
        "SKIPPED: docker-compose is not installed (on Debian: apt install docker-compose)\n");
    return std::nullopt;
  }();
  return file;
}

// A published port, "127.0.0.1:7001:6379/tcp" in the first version, an object in the second.
std::string port_text(const json& port) {
  if (port.is_string()) return std::regex_replace(port.get<std::string>(), std::regex("/tcp$"), "");
  const auto number = [](const json& value) {
    return value.is_string() ? value.get<std::string>() : std::to_string(value.get<int>());
  };
  return fmt::format("{}:{}:{}", port.value("host_ip", ""), number(port.at("published")),
                     number(port.at("target")));
}

// A mount, "source:target:ro" in the first version, an object in the second.
std::string volume_text(const json& volume) {
  if (volume.is_string()) {
    return std::regex_replace(volume.get<std::string>(), std::regex(":rw$"), "");
  }
  return fmt::format("{}:{}{}", volume.at("source").get<std::string>(),
                     volume.at("target").get<std::string>(),
                     volume.value("read_only", false) ? ":ro" : "");
}

std::string command_text(const json& command) {
  if (command.is_string()) return command.get<std::string>();
  std::string text;
  for (const auto& word : command) {
    if (!text.empty()) text += ' ';
    text += word.get<std::string>();
  }
  return text;
}

std::set<std::string> published_ports(const std::vector<std::string>& nodes = kNodes) {
  std::set<std::string> ports;
  for (const auto& node : nodes) {
    const auto text = port_text(compose_file()->at("services").at(node).at("ports").at(0));
    std::smatch match;
    REQUIRE(std::regex_match(text, match, std::regex(R"(127\.0\.0\.1:(\d+):6379)")));
    ports.insert(match[1]);
  }
  return ports;
}

}  // namespace

TEST_CASE("there are five nodes of each kind, adoption and the demo, of one image and our files") {
  if (!compose_file()) return;
  std::set<std::string> names;
  std::set<std::string> images;
  for (const auto& [name, service] : compose_file()->at("services").items()) {
    names.insert(name);
    if (service.contains("image")) images.insert(service.at("image").get<std::string>());
    for (const auto& volume : service.value("volumes", json::array())) {
      const auto text = volume_text(volume);
      const fs::path source = text.substr(0, text.find(':'));
      const bool made_by_user = source == kTree / "build/tls";  // by certificates.sh
      if (text.front() == '/' && !made_by_user) CHECK(fs::exists(source));
    }
  }
  std::set<std::string> expected(kNodes.begin(), kNodes.end());
  expected.insert(kTlsNodes.begin(), kTlsNodes.end());
  expected.insert({"adopt", "demo"});
  CHECK(names == expected);
  CHECK(images == std::set<std::string>{"redis:7-bookworm"});
  const auto& demo = compose_file()->at("services").at("demo");
  CHECK(demo.at("profiles") == json{"demo"});
  CHECK(fs::equivalent(demo.at("build").at("context").get<std::string>(), kTree));
  CHECK(fs::exists(kTree / demo.at("build").at("dockerfile").get<std::string>()));
}

TEST_CASE(
    "each node has its own volume and the project's files, those of the profile tls TLS alone") {
  if (!compose_file()) return;
  for (const bool tls : {false, true}) {
    for (const auto& name : tls ? kTlsNodes : kNodes) {
      INFO(name);
      const auto& node = compose_file()->at("services").at(name);
      std::set<std::string> volumes;
      for (const auto& volume : node.at("volumes")) volumes.insert(volume_text(volume));
      const auto tree = kTree.string();
      std::set<std::string> expected{
          name + ":/data", tree + "/cluster/redis.conf:/usr/local/etc/redis/redis.conf:ro",
          tree + "/cluster/users.acl:/usr/local/etc/redis/users.acl:ro"};
      if (tls) expected.insert(tree + "/build/tls:/tls:ro");
      CHECK(volumes == expected);
      const std::string command =
          "redis-server /usr/local/etc/redis/redis.conf --include /usr/local/etc/redis/users.acl "
          "--bind 0.0.0.0 --protected-mode no --dir /data";
      CHECK(command_text(node.at("command")) ==
            command +
                (tls ? " --port 0 --tls-port 6379 --tls-cert-file /tls/node.crt --tls-key-file "
                       "/tls/node.key --tls-ca-cert-file /tls/authority.crt"
                     : ""));
      CHECK(contains(command_text(node.at("healthcheck").at("test")),
                     std::string("redis-cli --user redlock-admin ") + (tls ? "--tls" : "ping")));
      CHECK(node.at("environment").at("REDISCLI_AUTH") == password_of("redlock-admin"));
      CHECK(compose_file()->at("volumes").contains(name));
      if (tls) CHECK(node.at("profiles") == json{"tls"});
    }
  }
  CHECK(compose_file()->at("volumes").size() == 10);
}

TEST_CASE("the nodes are adopted once they are healthy, by the script of `redlock adopt`") {
  if (!compose_file()) return;
  const auto& adopt = compose_file()->at("services").at("adopt");
  std::string command = "sh /redlock/adopt.sh /redlock/adopt.lua 60000";
  for (const auto& name : kNodes) {
    command += fmt::format(" {}:6379", name);
    CHECK(adopt.at("depends_on").at(name).at("condition") == "service_healthy");
  }
  CHECK(command_text(adopt.at("command")) == command);
  CHECK(adopt.at("environment").at("REDISCLI_USER") == "redlock-admin");
  CHECK(adopt.at("environment").at("REDISCLI_AUTH") == password_of("redlock-admin"));
  std::set<std::string> volumes;
  for (const auto& volume : adopt.at("volumes")) volumes.insert(volume_text(volume));
  CHECK(volumes == std::set<std::string>{
                       (kTree / "cluster/adopt.sh").string() + ":/redlock/adopt.sh:ro",
                       (kTree / "src/wire/scripts/adopt.lua").string() + ":/redlock/adopt.lua:ro"});
}

TEST_CASE("the ports are on the loopback address only, and those that README and file name") {
  if (!compose_file()) return;
  CHECK(published_ports() == std::set<std::string>{"7001", "7002", "7003", "7004", "7005"});
  const std::set<std::string> with_tls{"7101", "7102", "7103", "7104", "7105"};
  CHECK(published_ports(kTlsNodes) == with_tls);
  const auto ports_in = [](const std::string& text, const std::string& pattern) {
    std::set<std::string> ports;
    const std::regex port(pattern);
    for (std::sregex_iterator match(text.begin(), text.end(), port), end; match != end; ++match) {
      ports.insert((*match)[1]);
    }
    return ports;
  };
  CHECK(ports_in(text_in(kTree / "README.md"), R"(redis://127\.0\.0\.1:(\d+))") ==
        published_ports());
  const auto file = text_in(kTree / "docker-compose.yml");
  const auto login = "redlock-admin:" + password_of("redlock-admin") + "@";
  CHECK(contains(file, "n=redis://" + login));
  CHECK(contains(file, "t=rediss://" + login));
  CHECK(ports_in(file, R"(\$n:(\d+))") == published_ports());
  CHECK(ports_in(file, R"(\$t:(\d+))") == with_tls);
}
