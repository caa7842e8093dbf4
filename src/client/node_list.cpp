// SPDX-License-Identifier: MIT
// Lists of nodes as people write them, and what the environment says. Strict, as the URIs are: a
// list that two programs read differently is two sets of nodes.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <redlock/options.hpp>

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
  const char* const variable = std::getenv("REDLOCK_NODES");
  if (!nodes && (variable == nullptr || *variable == '\0')) {
    return wrong_list(
        "REDLOCK_NODES is not set: it lists all nodes, such as host1:6379,host2:6379,host3:6379");
  }
  auto list = parse_nodes(nodes ? *nodes : std::string_view(variable));
  if (!list) {
    Error error = std::move(list.error());
    if (!nodes) error.message = "REDLOCK_NODES: " + error.message;
    return tl::make_unexpected(std::move(error));
  }
  auto quarantine = quarantine_of_environment();
  if (!quarantine) return tl::make_unexpected(std::move(quarantine.error()));
  ClientOptions options;
  options.nodes = std::move(*list);
  options.quarantine = *quarantine;
  options.tls = {.ca = variable_or_empty("REDLOCK_TLS_CA"),
                 .certificate = variable_or_empty("REDLOCK_TLS_CERT"),
                 .key = variable_or_empty("REDLOCK_TLS_KEY"),
                 .name = variable_or_empty("REDLOCK_TLS_NAME")};
  if (auto file = variable_or_empty("REDLOCK_PASSWORD_FILE"); !file.empty()) {
    options.password = password_from_file(std::move(file));
  }
  return options;
}

}  // namespace redlock
