// SPDX-License-Identifier: MIT
// The checks of options_check.hpp, in the order in which a reader of options.hpp meets them.
#include "client/options_check.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "client/sentence.hpp"
#include "engine/nodes/set_configuration.hpp"
#include "engine/rules.hpp"

namespace redlock::client {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_nodes = 64;
constexpr std::size_t longest_name = 512;
constexpr milliseconds longest_duration = engine::longest_max_lease;

tl::unexpected<Error> wrong(std::string sentence) {
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(sentence), {}});
}

std::string ms(milliseconds value) {
  return std::to_string(value.count()) + " ms";
}

struct NamedDuration {
  const char* name;
  milliseconds value;
};

Result<void> check_positive(std::initializer_list<NamedDuration> options) {
  for (const auto& [name, value] : options) {
    if (value <= milliseconds::zero()) {
      return wrong(std::string(name) + " is " + ms(value) + ": it must be more than 0 ms");
    }
    if (value > longest_duration) {
      return wrong(std::string(name) + " is " + ms(value) + ": the most is a year, " +
                   ms(longest_duration));
    }
  }
  return {};
}

std::string same_server(const wire::NodeAddress& node) {
  if (!node.unix_path.empty()) return "unix:" + node.unix_path;
  std::string host = node.host;
  std::transform(host.begin(), host.end(), host.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return host + ':' + std::to_string(node.port);
}

Result<std::vector<wire::NodeAddress>> check_nodes(const ClientOptions& what) {
  const std::vector<std::string>& uris = what.nodes;
  if (uris.empty()) {
    return wrong("nodes is empty: list the URI of every Redis node, such as redis://10.0.0.1:6379");
  }
  if (uris.size() > most_nodes) {
    return wrong("nodes has " + std::to_string(uris.size()) + " entries: at most " +
                 std::to_string(most_nodes) + " can vote, and 3 or 5 are usual");
  }
  std::vector<wire::NodeAddress> nodes;
  for (std::size_t i = 0; i < uris.size(); ++i) {
    auto parsed = wire::parse_node_uri(uris[i]);
    if (!parsed) return wrong("nodes[" + std::to_string(i) + "]: " + parsed.error());
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      if (same_server(nodes[j]) != same_server(*parsed)) continue;
      return wrong("nodes[" + std::to_string(i) + "] " + parsed->label +
                   " is the same server as nodes[" + std::to_string(j) + "] " + nodes[j].label +
                   ": every node must be a Redis server of its own, listed once");
    }
    if (!parsed->user.empty() && parsed->password.empty() && !what.password) {
      return wrong("nodes[" + std::to_string(i) + "] " + parsed->label +
                   " has a user and no password: write user:password@, or give the password by a "
                   "file or by ClientOptions::password");
    }
    nodes.push_back(std::move(*parsed));
  }
  return nodes;
}

/// Without this check nobody would notice that TLS is set up but not used, and that secrets are
/// sent in plaintext.
Result<void> check_tls(const TlsOptions& tls, const std::vector<wire::NodeAddress>& nodes) {
  const bool wanted = std::ranges::any_of(nodes, &wire::NodeAddress::tls);
  for (const auto& [option, value] :
       {std::pair("tls.ca", &tls.ca), std::pair("tls.certificate", &tls.certificate),
        std::pair("tls.key", &tls.key), std::pair("tls.name", &tls.name)}) {
    if (wanted || value->empty()) continue;
    return wrong(
        std::string(option) +
        " is given, but the URI of no node begins with rediss://: write that for the nodes "
        "that have TLS, or leave the option out");
  }
  const auto fault = tls.name.empty() ? std::nullopt : wire::fault_of_server_name(tls.name);
  if (fault) return wrong("tls.name, " + client::in_quotes(tls.name) + ", " + *fault);
  if (tls.certificate.empty() == tls.key.empty()) return {};
  return wrong(tls.key.empty()
                   ? "tls.certificate is given without tls.key: name the file of its key"
                   : "tls.key is given without tls.certificate: name the file of its "
                     "certificate");
}

Result<void> check_drift_factor(double factor) {
  if (factor >= 0.0 && factor < 1.0) return {};  // NaN fails both
  return wrong("drift_factor is " + std::to_string(factor) +
               ": it is the part of a lease set aside for clock drift, at least 0 and less than "
               "1; 0.01 is usual");
}

Result<void> check_retries(const ClientOptions& what) {
  if (auto ok = check_positive({{"retry_min", what.retry_min},
                                {"retry_max", what.retry_max},
                                {"retry_cap", what.retry_cap}});
      !ok) {
    return ok;
  }
  if (what.retry_min > what.retry_max) {
    return wrong("retry_min (" + ms(what.retry_min) + ") is more than retry_max (" +
                 ms(what.retry_max) + "): make it the smaller of the two");
  }
  if (what.retry_max > what.retry_cap) {
    return wrong("retry_max (" + ms(what.retry_max) + ") is more than retry_cap (" +
                 ms(what.retry_cap) + "): raise the cap");
  }
  return {};
}

Result<void> check_max_lease(milliseconds lease) {
  return lease == milliseconds::zero() ? Result<void>() : check_positive({{"max_lease", lease}});
}

Result<void> check_client_name(std::string_view name) {
  // The names that CLIENT SETNAME accepts.
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
  if (printable && !name.empty()) return {};
  return wrong("client_name is " + (name.empty() ? "empty" : client::in_quotes(name)) +
               ": use letters, digits and punctuation without spaces, as CLIENT SETNAME wants");
}

}  // namespace

milliseconds own_max_lease(const ClientOptions& what) {
  const bool has_markers = what.quarantine == Quarantine::on;
  const bool is_given = what.max_lease != milliseconds::zero();
  return has_markers || is_given ? what.max_lease : engine::usual_max_lease;
}

Result<void> check_lease(milliseconds lease, milliseconds minimum, const ClientOptions& client) {
  if (auto ok = check_positive({{"lease", lease}}); !ok) return ok;
  const milliseconds longest = own_max_lease(client);
  if (longest != milliseconds::zero() && lease > longest) {
    return wrong(
        "lease is " + ms(lease) + ", longer than max_lease (" + ms(longest) +
        "): take a shorter lease, or raise max_lease, that of the nodes first (redlock set "
        "max-lease; docs/operations.md says how)");
  }
  // Compared as floating point: min_validity may be anything.
  const std::chrono::duration<double, std::milli> allowance =
      engine::rules::drift_allowance(lease, client.drift_factor);
  if (allowance < lease - minimum) return {};
  return wrong("lease is " + ms(lease) + ", of which the drift allowance (lease x drift_factor + " +
               "2 ms) leaves no more than min_validity (" + ms(minimum) +
               "): take a longer lease, or a smaller drift_factor or min_validity");
}

Result<std::vector<wire::NodeAddress>> check_client_options(const ClientOptions& what) {
  auto nodes = check_nodes(what);
  if (!nodes) return nodes;
  for (const auto& ok : {check_tls(what.tls, *nodes), check_drift_factor(what.drift_factor),
                         check_max_lease(what.max_lease),
                         check_positive({{"node_timeout", what.node_timeout},
                                         {"resolve_timeout", what.resolve_timeout},
                                         {"connect_timeout", what.connect_timeout}}),
                         check_retries(what), check_client_name(what.client_name)}) {
    if (!ok) return tl::make_unexpected(ok.error());
  }
  if (what.min_validity < milliseconds::zero()) {
    return wrong("min_validity is " + ms(what.min_validity) + ": it must be 0 ms or more");
  }
  if (auto ok = check_lease(what.lease, what.min_validity, what); !ok) {
    return tl::make_unexpected(std::move(ok.error()));
  }
  return nodes;
}

Result<void> check_name(std::string_view name) {
  if (name.empty()) return wrong("the name is empty: a lock needs a name of 1 to 512 bytes");
  if (name.size() > longest_name) {
    return wrong("the name " + client::in_quotes(name) + " has " + std::to_string(name.size()) +
                 " bytes: the most is " + std::to_string(longest_name));
  }
  if (name.find_first_of(std::string_view("{}\0", 3)) == std::string_view::npos) return {};
  return wrong("the name " + client::in_quotes(name) +
               " contains {, } or a NUL byte: any other bytes can be used");
}

Result<milliseconds> check_acquire_options(const AcquireOptions& what,
                                           const ClientOptions& client) {
  if (what.wait < milliseconds::zero()) {
    return wrong("wait is " + ms(what.wait) +
                 ": it must be 0 ms (one attempt) or more, or redlock::forever");
  }
  if (what.max_hold) {
    if (auto ok = check_positive({{"max_hold", *what.max_hold}}); !ok) {
      return tl::make_unexpected(std::move(ok.error()));
    }
  }
  const milliseconds minimum = what.min_validity.value_or(client.min_validity);
  if (minimum < milliseconds::zero()) {
    return wrong("min_validity is " + ms(minimum) + ": it must be 0 ms or more");
  }
  const milliseconds lease = what.lease.value_or(client.lease);
  if (auto ok = check_lease(lease, minimum, client); !ok) {
    return tl::make_unexpected(std::move(ok.error()));
  }
  return lease;
}

Result<engine::OwnerId> parse_owner(std::string_view text) {
  engine::OwnerId owner;
  bool good = text.size() == 32;
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    const char c = text[i];
    const bool digit = c >= '0' && c <= '9';
    good = digit || (c >= 'a' && c <= 'f');
    const int value = digit ? c - '0' : c - 'a' + 10;
    owner.bits[i / 16] = owner.bits[i / 16] << 4 | static_cast<std::uint64_t>(value & 15);
  }
  if (good) return owner;
  return wrong("the owner " + client::in_quotes(text) +
               " is not one that redlock made: it has 32 hexadecimal digits in lower case");
}

}  // namespace redlock::client
