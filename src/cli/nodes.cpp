// SPDX-License-Identifier: MIT
#include "cli/nodes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"

namespace redlock::cli {
namespace {

std::string trimmed(const std::string& text) {
  constexpr auto* blank = " \t\r\n";
  const auto begin = text.find_first_not_of(blank);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

// Empty entries are kept: the library says which entry is wrong.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> nodes;
  std::size_t begin = 0;
  for (;;) {
    const auto comma = text.find(',', begin);
    nodes.push_back(trimmed(text.substr(begin, comma - begin)));
    if (comma == std::string::npos) return nodes;
    begin = comma + 1;
  }
}

std::vector<std::string> read_file(const std::string& path) {
  std::error_code unknown;
  const bool directory = std::filesystem::is_directory(path, unknown);
  std::ifstream file(path);
  if (!file || directory) {
    throw Exit(exit_usage,
               fmt::format("cannot read --nodes-file {}: {}", path,
                           directory ? "it is a directory; name a file with one URI on each line"
                                     : std::generic_category().message(errno)));
  }
  std::vector<std::string> nodes;
  for (std::string line; std::getline(file, line);) {
    line = trimmed(line);
    if (line.find(",redis:") != std::string::npos || line.find(",unix:") != std::string::npos) {
      throw Exit(exit_usage, fmt::format("--nodes-file {} has several URIs on one line; write one "
                                         "on each line, without commas",
                                         path));
    }
    if (!line.empty() && line.front() != '#') nodes.push_back(line);
  }
  if (file.bad() || nodes.empty()) {
    throw Exit(exit_usage,
               fmt::format("--nodes-file {} names no node; write one URI on each line, for example "
                           "redis://127.0.0.1:7001",
                           path));
  }
  return nodes;
}

/// For tests, with nodes that have forgotten nothing because they never knew anything.
Quarantine quarantine_of_environment() {
  const char* const text = std::getenv("REDLOCK_QUARANTINE");
  if (text == nullptr || *text == '\0' || std::string_view(text) == "on") return Quarantine::on;
  if (std::string_view(text) == "off") return Quarantine::off;
  throw Exit(exit_usage, "REDLOCK_QUARANTINE is neither on nor off; unset it");
}

}  // namespace

NodeOptions::NodeOptions(CLI::App& app, const Invocation& invocation) : invocation_(invocation) {
  constexpr auto* group = "Nodes";
  auto* list = app.add_option("--nodes", list_,
                              "All nodes of the set: redis://[user:pass@]host[:port][/db] or "
                              "unix:///path?db=N. Default: $REDLOCK_NODES")
                   ->option_text("URI,URI,...")
                   ->group(group);
  app.add_option("--nodes-file", file_,
                 "A file with one URI on each line; # begins a comment. Keeps passwords out of the "
                 "list of processes")
      ->option_text("FILE")
      ->excludes(list)
      ->group(group);
  app.add_option_function<std::string>(
         "--node-timeout",
         [this](const std::string& text) {
           defaults_.node_timeout =
               parse_duration("--node-timeout", text, Zero::refused, Forever::refused);
         },
         "How long one node may take to answer; default 250ms")
      ->option_text("DUR")
      ->group(group);
  app.add_option_function<std::string>(
         "--max-lease",
         [this](const std::string& text) {
           defaults_.max_lease =
               parse_duration("--max-lease", text, Zero::refused, Forever::refused);
         },
         "The longest lease of this set, as its markers say; default 60s")
      ->option_text("DUR")
      ->group(group);
}

std::vector<std::string> NodeOptions::nodes() const {
  if (list_) return split_list(*list_);
  if (file_) return read_file(*file_);
  if (!invocation_.nodes_variable.empty()) return split_list(invocation_.nodes_variable);
  throw Exit(exit_usage,
             "which nodes? Give --nodes URI,URI,... or --nodes-file FILE, or set REDLOCK_NODES "
             "(`redlock fleet up` starts nodes on this machine and prints the line)");
}

ClientOptions NodeOptions::client_options() const {
  auto options = defaults_;
  options.nodes = nodes();
  options.lease = default_lease(options);
  options.client_name = "redlock-cli";
  options.quarantine = quarantine_of_environment();
  return options;
}

Client NodeOptions::connect() const {
  return make_client(client_options());
}

Client make_client(ClientOptions options) {
  auto client = Client::create(std::move(options));
  if (!client) throw failure(client.error());
  return std::move(*client);
}

std::chrono::milliseconds default_lease(const ClientOptions& options) {
  return std::min(ClientOptions{}.lease, options.max_lease);
}

}  // namespace redlock::cli
