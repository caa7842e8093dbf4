// SPDX-License-Identifier: MIT
// Lists of nodes as people write them, and the settings of the environment. Strict, as the URIs
// are: a list that two programs read differently is two sets of nodes.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <redlock/options.hpp>

#include "client/small_file.hpp"
#include "wire/node_address.hpp"

namespace redlock {
namespace {

constexpr std::string_view blanks = " \t\r\n\v\f";

tl::unexpected<Error> wrong_list(std::string sentence) {
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(sentence), {}});
}

/// The list without its comments: a '#' where a node could begin, up to the end of the line.
std::string without_comments(std::string_view text) {
  std::string result;
  char before = ' ';
  while (!text.empty()) {
    const char c = text.front();
    const bool begins = before == ',' || blanks.find(before) != std::string_view::npos;
    if (c == '#' && begins) {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
      continue;
    }
    result += c;
    before = c;
    text.remove_prefix(1);
  }
  return result;
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0;;) {
    begin = text.find_first_not_of(blanks, begin);
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
}

/// REDLOCK_QUARANTINE: for tests, with nodes that have forgotten nothing because they are new.
Result<Quarantine> quarantine_of_environment() {
  const char* const variable = std::getenv("REDLOCK_QUARANTINE");
  const std::string_view text = variable == nullptr ? "" : variable;
  if (text.empty() || text == "on") return Quarantine::on;
  if (text == "off") return Quarantine::off;
  return wrong_list("REDLOCK_QUARANTINE is neither on nor off; unset it");
}

std::string variable_or_empty(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// REDLOCK_MAX_LEASE, as the command writes durations; none if it is not set.
Result<std::optional<std::chrono::milliseconds>> max_lease_of_environment() {
  const std::string text = variable_or_empty("REDLOCK_MAX_LEASE");
  if (text.empty()) return std::nullopt;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, length] :
       std::initializer_list<std::pair<std::string_view, std::chrono::milliseconds>>{
           {"ms", std::chrono::milliseconds(1)},
           {"s", std::chrono::seconds(1)},
           {"m", std::chrono::minutes(1)},
           {"h", std::chrono::hours(1)}}) {
    if (problem == std::errc() && number > 0 && unit == name) return number * length;
  }
  return wrong_list(
      "REDLOCK_MAX_LEASE is not a duration; write one with its unit, such as 30s or 2m");
}

Result<std::vector<std::string>> nodes_of_environment() {
  const char* source = "REDLOCK_NODES";
  std::string text = variable_or_empty(source);
  if (text.empty()) {
    source = "REDLOCK_NODES_FILE";
    const std::string path = variable_or_empty(source);
    if (path.empty()) {
      return wrong_list(
          "REDLOCK_NODES is not set: it lists all nodes, such as "
          "host1:6379,host2:6379,host3:6379; nor is REDLOCK_NODES_FILE");
    }
    auto read = read_small_file(path);
    if (!read) return wrong_list(source + (": " + read.error().message));
    text = std::move(*read);
  }
  auto list = parse_nodes(text);
  if (!list) list.error().message = source + (": " + list.error().message);
  return list;
}

}  // namespace

Result<std::vector<std::string>> parse_nodes(std::string_view text) {
  const std::string list = without_comments(text);
  if (words_in(list).empty()) {
    return wrong_list(
        "the list names no node; write host:port or a URI such as redis://10.0.0.1:6379 for each, "
        "with commas or line breaks between them");
  }
  std::vector<std::string> nodes;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    auto words = words_in(std::string_view(list).substr(begin, comma - begin));
    if (words.empty()) {
      return wrong_list("nodes[" + std::to_string(nodes.size()) +
                        "]: there is nothing before or behind a comma; take the comma out");
    }
    for (auto& word : words) {
      if (auto parsed = wire::parse_node_uri(word); !parsed) {
        return wrong_list("nodes[" + std::to_string(nodes.size()) + "]: " + parsed.error());
      }
      nodes.push_back(std::move(word));
    }
    begin = comma + 1;
  }
  return nodes;
}

Result<ClientOptions> ClientOptions::from_env(std::optional<std::string_view> nodes) {
  auto list = nodes ? parse_nodes(*nodes) : nodes_of_environment();
  if (!list) return tl::make_unexpected(std::move(list.error()));
  const auto max_lease = max_lease_of_environment();
  if (!max_lease) return tl::make_unexpected(max_lease.error());
  auto quarantine = quarantine_of_environment();
  if (!quarantine) return tl::make_unexpected(std::move(quarantine.error()));
  ClientOptions options;
  options.nodes = std::move(*list);
  options.quarantine = *quarantine;
  options.max_lease = max_lease->value_or(options.max_lease);
  options.lease = std::min(options.lease, max_lease->value_or(options.lease));
  options.tls = {.ca = variable_or_empty("REDLOCK_TLS_CA"),
                 .certificate = variable_or_empty("REDLOCK_TLS_CERT"),
                 .key = variable_or_empty("REDLOCK_TLS_KEY"),
                 .name = variable_or_empty("REDLOCK_TLS_NAME")};
  if (auto file = variable_or_empty("REDLOCK_PASSWORD_FILE"); !file.empty()) {
    auto password = password_from_file(std::move(file));
    if (!password) return wrong_list("REDLOCK_PASSWORD_FILE: " + password.error().message);
    options.password = std::move(*password);
  }
  if (const auto file = variable_or_empty("REDLOCK_TRACE"); !file.empty()) {
    try {
      options.trace = trace_to_file(file);
    } catch (const std::system_error& error) {
      return wrong_list(std::string("REDLOCK_TRACE: ") + error.what());
    }
  }
  return options;
}

}  // namespace redlock
