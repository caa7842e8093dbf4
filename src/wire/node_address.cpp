// SPDX-License-Identifier: MIT
// Takes a node URI apart. Strict: a part that is not understood is an error, never ignored, because
// a node list that is read differently by two programs is two sets of nodes. No error repeats text
// of the URI beyond its scheme: with a forgotten '@' or '/' any part may be the password.
#include "wire/node_address.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cassert>
#include <cctype>
#include <charconv>
#include <optional>
#include <sys/un.h>

#include "wire/percent.hpp"

namespace redlock::wire {
namespace {

using Failure = std::optional<std::string>;  // a sentence, or nothing if all is well

constexpr std::string_view how = "; write redis://[user:password@]host[:port][/db]";
constexpr std::string_view tls_scheme = "rediss";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

template <typename Number>
std::optional<Number> whole_number(std::string_view digits, Number largest) {
  Number value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value > largest) return {};
  return value;
}

bool is_host_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
  };
  return name.size() <= 253 && std::all_of(name.begin(), name.end(), allowed);
}

Failure parse_login(std::string_view login, NodeAddress& node) {
  const std::size_t colon = login.find(':');
  if (colon == std::string_view::npos || login == ":") {
    return "the URI has a '@' but no password before it; write user:password@ or :password@";
  }
  const auto user = percent_decode(login.substr(0, colon));
  const auto password = percent_decode(login.substr(colon + 1));
  if (!user || !password) {
    return "the user or password has a '%' that is not followed by two hexadecimal digits; write "
           "'%' itself as %25";
  }
  node.user = *user;
  node.password = *password;
  return {};
}

Failure parse_ipv6(std::string_view text, NodeAddress& node) {
  const auto host = percent_decode(text);
  in6_addr ignored{};
  if (!host || inet_pton(AF_INET6, host->substr(0, host->find('%')).c_str(), &ignored) != 1) {
    return "there is no IPv6 address between the brackets";
  }
  node.host = lower(*host);
  return {};
}

Failure parse_name(std::string_view text, NodeAddress& node) {
  node.host = lower(text);
  if (!is_host_name(node.host)) return "the host has a character that no host name has";
  if (node.host.front() == '.') return "the host begins with a dot; write the whole name";
  return {};
}

Failure parse_host_and_port(std::string_view text, NodeAddress& node) {
  const bool bracket = !text.empty() && text.front() == '[';
  const std::size_t end = bracket ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return "the '[' before the host is never closed";
  const std::string_view host = bracket ? text.substr(1, end - 1) : text.substr(0, end);
  std::string_view rest = text.substr(bracket ? end + 1 : end);
  if (!bracket && std::count(text.begin(), text.end(), ':') > 1) {
    return "the host has more than one ':'; write an IPv6 address in brackets, as [::1]";
  }
  if (host.empty()) return "the host is missing" + std::string(how);
  if (Failure failure = bracket ? parse_ipv6(host, node) : parse_name(host, node)) return failure;
  if (rest.empty()) return {};
  if (rest.front() != ':') return "there is something between ']' and the port";
  const auto port = whole_number<std::uint16_t>(rest.substr(1), 65'535);
  if (!port || *port == 0) return "the port is not a number from 1 to 65535";
  node.port = *port;
  return {};
}

Failure parse_db(std::string_view digits, NodeAddress& node) {
  const auto db = whole_number<std::uint32_t>(digits, 2'147'483'647);
  if (!db) return "the database is not a number (0, 1, 2, ...)";
  node.db = *db;
  return {};
}

/// The text behind '?' in a rediss:// URI.
Failure parse_tls_option(std::string_view text, NodeAddress& node) {
  constexpr std::string_view option = "name=";
  if (!text.starts_with(option)) return "a rediss:// URI takes one option only: ?name=NAME";
  const std::string name = lower(text.substr(option.size()));
  if (auto fault = fault_of_server_name(name)) return "the name behind ?name= " + *fault;
  node.tls_name = name;
  return {};
}

Failure parse_tcp(std::string_view rest, NodeAddress& node) {
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  std::string_view path = rest.substr(end);
  if (path.find('@') != std::string_view::npos) {
    return "there is a '@' behind the first '/', '?' or '#'; inside a password write %2F, %3F and "
           "%23 for those";
  }
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    if (Failure failure = parse_login(authority.substr(0, at), node)) return failure;
    authority.remove_prefix(at + 1);
  }
  if (Failure failure = parse_host_and_port(authority, node)) return failure;
  if (const std::size_t query = path.find('?'); node.tls && query != std::string_view::npos) {
    if (Failure failure = parse_tls_option(path.substr(query + 1), node)) return failure;
    path = path.substr(0, query);
  }
  if (path.find_first_of("?#") != std::string_view::npos) {
    return "a redis:// URI takes no options after '?' or '#'" + std::string(how);
  }
  if (path.size() > 1) return parse_db(path.substr(1), node);
  return {};
}

/// host:port and nothing else: an ambiguous text needs its scheme.
Failure parse_without_scheme(std::string_view text, NodeAddress& node) {
  const std::string scheme_wanted =
      "the node has no scheme, so it can be host:port only" + std::string(how) + " or unix:///path";
  if (text.find_first_of("@/?#") != std::string_view::npos) return scheme_wanted;
  const std::size_t host_end = text.front() == '[' ? text.find(']') : 0;
  if (text.find(':', std::min(host_end, text.size())) == std::string_view::npos) {
    return "the node has neither scheme nor port; write host:port, as 127.0.0.1:6379";
  }
  return parse_host_and_port(text, node);
}

Failure parse_unix(std::string_view rest, NodeAddress& node) {
  const std::size_t query = std::min(rest.find('?'), rest.size());
  // Not before the first '/': a path may have a '@', a login only with its '/' encoded.
  const std::size_t slash = std::min(rest.find_first_of("/?"), query);
  if (slash > 0) {
    if (rest[slash - 1] != '@') {
      return "a Unix socket needs an absolute path; write unix:///path/to/redis.sock";
    }
    if (Failure failure = parse_login(rest.substr(0, slash - 1), node)) return failure;
  }
  const auto path = percent_decode(rest.substr(slash, query - slash));
  if (!path) return "the path has a '%' that is not followed by two hexadecimal digits";
  if (path->size() < 2) return "the path of the Unix socket is missing";
  if (path->size() >= sizeof(sockaddr_un{}.sun_path)) {
    return "the path of the Unix socket is longer than the system allows (107 bytes)";
  }
  node.unix_path = *path;
  if (query == rest.size()) return {};
  constexpr std::string_view option = "db=";
  const std::string_view text = rest.substr(query + 1);
  if (text.substr(0, option.size()) != option) return "a unix:// URI takes one option only: ?db=N";
  return parse_db(text.substr(option.size()), node);
}

std::string make_label(const NodeAddress& node, const std::string& user,
                       const std::string& tls_name) {
  const std::string login = user.empty() ? "" : percent_encode(user) + "@";
  const std::string db = std::to_string(node.db);
  if (!node.unix_path.empty()) {
    return "unix://" + login + percent_encode(node.unix_path) + (node.db == 0 ? "" : "?db=" + db);
  }
  const bool ipv6 = node.host.find(':') != std::string::npos;
  // Appended, not "[" + ...: GCC 12 warns about that at -O3 (-Wrestrict, wrongly).
  std::string label = (node.tls ? "rediss://" : "redis://") + login;
  if (ipv6) label += '[';
  label += ipv6 ? percent_encode(node.host) : node.host;
  if (ipv6) label += ']';
  label += ':';
  label += std::to_string(node.port);
  if (node.db != 0) label += "/" + db;
  if (!tls_name.empty()) label += "?name=" + tls_name;
  return label;
}

/// Every byte that could mean something in a URI.
std::string encoded(const std::string& text) {
  constexpr auto* digits = "0123456789ABCDEF";
  std::string result;
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    if (std::isalnum(c) != 0) {
      result += static_cast<char>(c);
    } else {
      result += {'%', digits[c >> 4], digits[c & 15]};
    }
  }
  return result;
}

}  // namespace

std::optional<std::string> fault_of_server_name(std::string_view name) {
  const std::string text = lower(name);
  in6_addr ignored{};
  const bool whole = text.find('\0') == std::string::npos;  // inet_pton reads no further than that
  if (whole && inet_pton(AF_INET6, text.c_str(), &ignored) == 1) return {};
  if (text.empty() || !is_host_name(text)) return "is neither a host name nor an address";
  if (text.front() != '.') return {};
  return "begins with a dot, which would stand for every name that ends like it; write one whole "
         "name that the certificate has";
}

tl::expected<NodeAddress, std::string> parse_node_uri(std::string_view uri) {
  if (uri.empty()) return tl::unexpected("the node URI is empty" + std::string(how));
  if (uri.find('\0') != std::string_view::npos) {
    return tl::unexpected(std::string("the node URI has a byte of value zero; take it out"));
  }
  const std::size_t colon = uri.find("://");
  const bool has_scheme = colon != std::string_view::npos;
  const std::string scheme = has_scheme ? lower(uri.substr(0, colon)) : "";
  const std::string_view rest = has_scheme ? uri.substr(colon + 3) : uri;
  NodeAddress node;
  Failure failure;
  if (!has_scheme) {
    failure = parse_without_scheme(rest, node);
  } else if (scheme == "redis" || scheme == tls_scheme) {
    node.tls = scheme == tls_scheme;
    failure = parse_tcp(rest, node);
  } else if (scheme == "unix") {
    failure = parse_unix(rest, node);
  } else {
    failure = "the scheme is neither redis://, rediss:// (TLS) nor unix://";
  }
  if (failure) return tl::unexpected(std::move(*failure));
  node.label = make_label(node, node.user, node.tls_name);
  node.address = make_label(node, {}, {});
  return node;
}

std::string uri_of(const NodeAddress& member, const NodeAddress& other) {
  const bool has_login = !member.user.empty() || !member.password.empty();
  const NodeAddress& login = has_login ? member : other;
  std::string uri = member.address;
  if (!login.user.empty() || !login.password.empty()) {
    uri.insert(uri.find("://") + 3, encoded(login.user) + ":" + encoded(login.password) + "@");
  }
  const std::string& name = member.tls_name.empty() ? other.tls_name : member.tls_name;
  if (member.tls && !name.empty()) uri += "?name=" + name;
  return uri;
}

NodeAddress moved_to(const NodeAddress& node, std::string_view address) {
  auto member = parse_node_uri(address);
  assert(member);  // see NodeMarker::disagreement
  auto moved = parse_node_uri(uri_of(*member, node));
  assert(moved);
  moved->later = node.later;
  return std::move(*moved);
}

}  // namespace redlock::wire
