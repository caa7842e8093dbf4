// SPDX-License-Identifier: MIT
#include "cli/nodes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/bounded_file.hpp"
#include "cli/duration.hpp"
#include "cli/exit_code.hpp"

namespace redlock::cli {
namespace {

// The library's sentences name the entry of the list; ours says which list.
ClientOptions options_of(std::string_view list, const std::string& source) {
  auto options = ClientOptions::from_env(list);
  if (options) return std::move(*options);
  const auto& sentence = options.error().message;
  throw Exit(exit_usage, sentence.starts_with("REDLOCK_") ? sentence : source + ": " + sentence);
}

}  // namespace

NodeOptions::NodeOptions(CLI::App& app, const Invocation& invocation) : invocation_(invocation) {
  constexpr auto* group = "Nodes";
  auto* list = app.add_option("--nodes", list_,
                              "All nodes of the set, each as redis://[user:pass@]host[:port][/db], "
                              "host:port or unix:///path?db=N. Default: $REDLOCK_NODES")
                   ->option_text("NODE,NODE,...")
                   ->group(group);
  app.add_option("--nodes-file", file_,
                 "A file with the nodes, with line breaks or commas between them; # begins a "
                 "comment. Keeps passwords out of the list of processes")
      ->option_text("FILE")
      ->excludes(list)
      ->group(group);
  app.add_option_function<std::string>(
         "--node-timeout",
         [this](const std::string& text) {
           node_timeout_ = parse_duration("--node-timeout", text, Zero::refused, Forever::refused);
         },
         "How long one node may take to answer; default 250ms")
      ->option_text("DUR")
      ->group(group);
  app.add_option_function<std::string>(
         "--max-lease",
         [this](const std::string& text) {
           max_lease_ = parse_duration("--max-lease", text, Zero::refused, Forever::refused);
         },
         "The longest lease of this set, as its markers say; default 60s")
      ->option_text("DUR")
      ->group(group);
}

ClientOptions NodeOptions::options_with_nodes() const {
  if (list_) return options_of(*list_, "--nodes");
  if (file_) return options_of(read_bounded("--nodes-file", *file_), "--nodes-file " + *file_);
  if (!invocation_.nodes_variable.empty()) {
    return options_of(invocation_.nodes_variable, "REDLOCK_NODES");
  }
  throw Exit(exit_usage,
             "which nodes? Give --nodes NODE,NODE,... or --nodes-file FILE, or set REDLOCK_NODES "
             "(`redlock fleet up` starts nodes on this machine and prints the line)");
}

ClientOptions NodeOptions::client_options() const {
  auto options = options_with_nodes();
  options.node_timeout = node_timeout_.value_or(options.node_timeout);
  options.max_lease = max_lease_.value_or(options.max_lease);
  options.lease = default_lease(options);
  options.client_name = "redlock-cli";
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
