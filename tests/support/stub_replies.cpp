// SPDX-License-Identifier: MIT
//
// The texts are those that Redis 7.0 sends, as far as a client may look at them.
#include "support/stub_replies.hpp"

#include <chrono>
#include <fmt/core.h>
#include <string>
#include <strings.h>

namespace redlock::testing {
namespace {

constexpr std::string_view kInfo =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nprocess_id:1\r\n"
    "run_id:5715b5715b5715b5715b5715b5715b5715b5715b\r\ntcp_port:6379\r\n"
    "uptime_in_seconds:1000000\r\n# Memory\r\nmaxmemory:134217728\r\n"
    "maxmemory_policy:noeviction\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n"
    "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nsecond_repl_offset:-1\r\n"
    "# Cluster\r\ncluster_enabled:0\r\n";

bool same(std::string_view left, std::string_view right) {
  return left.size() == right.size() && ::strncasecmp(left.data(), right.data(), left.size()) == 0;
}

std::string time_now() {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return array({bulk(std::to_string(now / 1'000'000)), bulk(std::to_string(now % 1'000'000))});
}

std::string config_get(const RedisCommand& command) {
  constexpr std::pair<std::string_view, std::string_view> kSettings[] = {
      {"appendonly", "yes"},
      {"appendfsync", "always"},
      {"maxmemory-policy", "noeviction"},
      {"maxmemory", "134217728"},
  };
  std::vector<std::string> found;
  for (std::size_t i = 2; i < command.size(); ++i) {
    for (const auto& [name, value] : kSettings) {
      if (!same(command[i], name)) continue;
      found.push_back(bulk(name));
      found.push_back(bulk(value));
    }
  }
  return array(found);
}

}  // namespace

std::string simple(std::string_view text) {
  return fmt::format("+{}\r\n", text);
}

std::string error(std::string_view text) {
  return fmt::format("-{}\r\n", text);
}

std::string integer(std::int64_t value) {
  return fmt::format(":{}\r\n", value);
}

std::string bulk(std::string_view bytes) {
  return fmt::format("${}\r\n{}\r\n", bytes.size(), bytes);
}

std::string nil() {
  return "$-1\r\n";
}

std::string array(const std::vector<std::string>& replies) {
  auto text = fmt::format("*{}\r\n", replies.size());
  for (const auto& reply : replies) text += reply;
  return text;
}

bool is(const RedisCommand& command, std::string_view name) {
  const auto space = name.find(' ');
  if (command.empty() || !same(command[0], name.substr(0, space))) return false;
  if (space == std::string_view::npos) return true;
  return command.size() > 1 && same(command[1], name.substr(space + 1));
}

std::string stub_digest(std::string_view script) {
  return fmt::format("{:040x}", std::hash<std::string_view>{}(script));
}

std::string like_redis(const RedisCommand& command) {
  for (const auto* name : {"AUTH", "SELECT", "CLIENT SETNAME", "CLIENT NO-EVICT"}) {
    if (is(command, name)) return simple("OK");
  }
  if (is(command, "HELLO")) return error("NOPROTO unsupported protocol version");
  if (is(command, "PING")) return simple("PONG");
  if (is(command, "CLIENT ID")) return integer(7);
  if (is(command, "CLIENT KILL")) return integer(0);
  if (is(command, "INFO")) return bulk(kInfo);
  if (is(command, "CONFIG GET")) return config_get(command);
  if (is(command, "PTTL")) return integer(-2);
  if (is(command, "TIME")) return time_now();
  if (is(command, "SCRIPT LOAD")) return bulk(stub_digest(command.at(2)));
  return error(fmt::format("ERR unknown command '{}'", command.empty() ? "" : command[0]));
}

}  // namespace redlock::testing
