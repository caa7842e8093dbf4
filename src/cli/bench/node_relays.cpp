// SPDX-License-Identifier: MIT
#include "cli/bench/node_relays.hpp"

#include <charconv>
#include <chrono>
#include <cstring>
#include <fmt/core.h>
#include <netdb.h>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/exit_code.hpp"
#include "cluster/sockets.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::milliseconds slower_each_way(10);

/// A node's URI in parts, as they are written.
struct UriParts {
  std::string login;  ///< with its '@'
  std::string host;
  std::string port = "6379";
  std::string path;  ///< of a Unix socket
  std::string db;
  bool tls = false;
  std::string tls_name;  ///< that the certificate must have
};

void take_host_and_port(std::string_view text, UriParts& parts) {
  const bool bracket = text.starts_with('[');
  const auto end = bracket ? text.find(']') : text.find(':');
  parts.host = text.substr(bracket ? 1 : 0, bracket ? end - 1 : end);
  const auto colon = text.find(':', bracket ? end : 0);
  if (colon != std::string_view::npos) parts.port = text.substr(colon + 1);
}

// The library has accepted the URI, so this code does not validate it.
UriParts parts_of(std::string_view uri) {
  UriParts parts;
  const auto scheme_end = uri.find("://");
  if (scheme_end == std::string_view::npos) {
    take_host_and_port(uri, parts);
    return parts;
  }
  const bool is_unix = uri.front() == 'u' || uri.front() == 'U';
  std::string_view rest = uri.substr(scheme_end + 3);
  const auto slash = rest.find('/');
  const auto at = rest.substr(0, slash).rfind('@');
  if (at != std::string_view::npos) {
    parts.login = rest.substr(0, at + 1);
    rest.remove_prefix(at + 1);
  }
  parts.tls = uri.substr(0, scheme_end).size() == std::string_view("rediss").size();
  constexpr std::string_view name_option = "?name=";
  if (const auto name = rest.find(name_option); parts.tls && name != std::string_view::npos) {
    parts.tls_name = rest.substr(name + name_option.size());
    rest = rest.substr(0, name);
  }
  const auto end = rest.find(is_unix ? '?' : '/');
  const auto before = rest.substr(0, end);
  const auto behind = end == std::string_view::npos ? "" : rest.substr(end + 1);
  if (is_unix) {
    parts.path = before;
    parts.db = behind.empty() ? "" : behind.substr(behind.find('=') + 1);
  } else {
    take_host_and_port(before, parts);
    parts.db = behind;
  }
  return parts;
}

std::string without_escapes(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc()) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string with_escapes(std::string_view path) {
  std::string result;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '-' || c == '.' || c == '_';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

/// Of a relay, behind which a node's certificate must have the name that it has without. Anybody on
/// this machine may connect to it, as to the node itself.
std::string uri_with_tls(const UriParts& parts, std::uint16_t port) {
  std::string uri = "rediss://" + parts.login + fmt::format("127.0.0.1:{}", port);
  if (!parts.db.empty()) uri += "/" + parts.db;
  const auto host = without_escapes(parts.host);
  return uri +
         "?name=" + (parts.tls_name.empty() ? host.substr(0, host.find('%')) : parts.tls_name);
}

// Looked up once: a bench is short.
std::vector<cluster::SocketAddress> addresses_of(const UriParts& parts) {
  if (!parts.path.empty()) return {cluster::address_of_path(without_escapes(parts.path))};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto host = without_escapes(parts.host);
  if (::getaddrinfo(host.c_str(), parts.port.c_str(), &hints, &found) != 0) return {};
  std::vector<cluster::SocketAddress> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    cluster::SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return addresses;
}

std::size_t faulty_nodes(Scenario scenario, std::size_t nodes) {
  switch (scenario) {
    case Scenario::healthy:
    case Scenario::contended:
      return 0;
    case Scenario::one_slow:
      return 1;
    case Scenario::minority_down:
    case Scenario::minority_hung:
      break;
  }
  return (nodes - 1) / 2;
}

}  // namespace

const char* to_string(Scenario scenario) {
  switch (scenario) {
    case Scenario::healthy:
      return "healthy";
    case Scenario::minority_down:
      return "minority-down";
    case Scenario::minority_hung:
      return "minority-hung";
    case Scenario::one_slow:
      return "one-slow";
    case Scenario::contended:
      break;
  }
  return "contended";
}

NodeRelays::NodeRelays(Scenario scenario, std::vector<std::string> nodes,
                       const std::string& tls_name)
    : scenario_(scenario), uris_(std::move(nodes)) {
  const auto count = faulty_nodes(scenario, uris_.size());
  const bool has_fault = scenario != Scenario::healthy && scenario != Scenario::contended;
  if (!has_fault) return;
  if (uris_.size() < 3) {
    throw Exit(exit_usage, fmt::format("--scenario {} needs three nodes or more: without one of "
                                       "{} there is no quorum",
                                       to_string(scenario), uris_.size()));
  }
  try {
    relay_last(count, tls_name);
  } catch (const std::system_error& error) {
    throw Exit(exit_internal,
               fmt::format("--scenario {} needs a directory for Unix sockets: {}; name another one "
                           "in TMPDIR, of no more than 80 bytes",
                           to_string(scenario), error.what()));
  }
}

void NodeRelays::relay_last(std::size_t count, const std::string& tls_name) {
  directory_.emplace("redlock-bench");
  for (std::size_t node = uris_.size() - count; node < uris_.size(); ++node) {
    auto parts = parts_of(uris_[node]);
    if (parts.tls_name.empty()) parts.tls_name = tls_name;
    const auto path = (directory_->path() / std::to_string(node + 1)).string();
    auto listener = parts.tls ? cluster::listen_on_loopback() : cluster::listen_on_path(path);
    uris_[node] = parts.tls ? uri_with_tls(parts, cluster::port_of(listener))
                            : "unix://" + parts.login + with_escapes(path) +
                                  (parts.db.empty() ? "" : "?db=" + parts.db);
    relays_.push_back(
        std::make_unique<cluster::Relay>(std::move(listener), [addresses = addresses_of(parts)] {
          cluster::UniqueFd connection;
          for (const auto& address : addresses) {
            connection = cluster::connect_to(address, std::chrono::seconds(1));
            if (connection) break;
          }
          return connection;
        }));
  }
}

void NodeRelays::begin_fault() {
  for (const auto& relay : relays_) {
    if (scenario_ == Scenario::minority_down) relay->refuse();
    if (scenario_ == Scenario::minority_hung) relay->hang();
    if (scenario_ == Scenario::one_slow) relay->delay(slower_each_way);
  }
}

void NodeRelays::end_fault() {
  for (const auto& relay : relays_) {
    // A node that hung must not execute now the messages that it had not received.
    if (scenario_ == Scenario::minority_hung) relay->reset_all();
    relay->pass();
  }
}

std::string NodeRelays::in_words() const {
  if (relays_.empty()) return {};
  std::string who;
  for (auto node = uris_.size() - relays_.size(); node < uris_.size(); ++node) {
    const bool last = node + 1 == uris_.size();
    who += fmt::format("{}{}", who.empty() ? "" : (last ? " and " : ", "), node + 1);
  }
  const bool one = relays_.size() == 1;
  const auto nodes = fmt::format("{} {}", one ? "node" : "nodes", who);
  if (scenario_ == Scenario::minority_down) return nodes + (one ? " is down" : " are down");
  if (scenario_ == Scenario::minority_hung) return nodes + (one ? " hangs" : " hang");
  return nodes + " answers 20 ms later";
}

}  // namespace redlock::cli
