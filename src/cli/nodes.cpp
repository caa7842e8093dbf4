// SPDX-License-Identifier: MIT
#include "cli/nodes.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <utility>

#include <redlock/admin.hpp>

#include "cli/bounded_file.hpp"
#include "cli/duration.hpp"
#include "cli/event_log.hpp"
#include "cli/exit_code.hpp"
#include "cli/secrets.hpp"

namespace redlock::cli {
namespace {

// The library's sentences name the entry of the list; ours says which list. Without one, that is
// in the file that REDLOCK_NODES_FILE names, and so the library says.
ClientOptions options_of(std::optional<std::string_view> list, const std::string& source) {
  auto options = ClientOptions::from_env(list);
  if (options) return std::move(*options);
  const auto& sentence = options.error().message;
  throw Exit(exit_usage, sentence.starts_with("REDLOCK_") ? sentence : source + ": " + sentence);
}

/// Of a file with a password. A group may have been given it on purpose.
void warn_of_readers(const char* source, const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  if ((about.st_mode & S_IROTH) == 0) return;
  note({LogLevel::warning, "note",
        fmt::format("{} {}: every user of this machine may read the password in it; chmod 600 it",
                    source, path)});
}

}  // namespace

NodeOptions::NodeOptions(CLI::App& app, const Invocation& invocation) : invocation_(invocation) {
  constexpr auto* group = "Nodes";
  auto* list = app.add_option("--nodes", list_,
                              "All nodes of the set, or one or two of them, each as "
                              "redis://[user:pass@]host[:port][/db], "
                              "the same with rediss:// for TLS, host:port or unix:///path?db=N. "
                              "Default: $REDLOCK_NODES")
                   ->option_text("NODE,NODE,...")
                   ->group(group);
  app.add_option(
         "--nodes-file", file_,
         "A file that lists the nodes, with line breaks or commas between them; # begins a "
         "comment. Keeps passwords out of the list of processes. Default: $REDLOCK_NODES_FILE, "
         "where REDLOCK_NODES is not set")
      ->option_text("FILE")
      ->excludes(list)
      ->group(group);
  app.add_option(
         "--password-file", password_file_,
         "The nodes' password, in the first line of this file, or a line for each node: "
         "redis://user@host:port PASSWORD. It is read anew for every connection; the nodes' URIs "
         "may then be redis://user:@host. Default: $REDLOCK_PASSWORD_FILE")
      ->option_text("FILE")
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
         "The longest lease of this client, no longer than that of the set. Default: "
         "$REDLOCK_MAX_LEASE, or that of the set (60s for a new one)")
      ->option_text("DUR")
      ->group(group);
  add_tls(app);
  add_log_option(app);
  app.add_option("--trace", trace_,
                 "Append a line for each message to a node, each reply and each decision to this "
                 "file. Default: $REDLOCK_TRACE")
      ->option_text("FILE");
}

void NodeOptions::add_tls(CLI::App& app) {
  constexpr auto* group = "Nodes with TLS (rediss://)";
  app.add_option(
         "--tls-ca", tls_ca_,
         "The authorities to trust: PEM certificates. Default: $REDLOCK_TLS_CA, or those of "
         "the system")
      ->option_text("FILE|DIR")
      ->group(group);
  app.add_option("--tls-cert", tls_certificate_,
                 "The certificate to present to nodes that ask for one. Default: $REDLOCK_TLS_CERT")
      ->option_text("FILE")
      ->group(group);
  app.add_option("--tls-key", tls_key_, "The key of --tls-cert. Default: $REDLOCK_TLS_KEY")
      ->option_text("FILE")
      ->group(group);
  app.add_option("--tls-name", tls_name_,
                 "The name or address that the nodes' certificates must have. Default: "
                 "$REDLOCK_TLS_NAME, or the host of each node's URI")
      ->option_text("NAME")
      ->group(group);
}

ClientOptions NodeOptions::options_with_nodes() const {
  if (list_) return options_of(*list_, "--nodes");
  if (file_) {
    const auto text = read_bounded("--nodes-file", *file_);
    if (has_password(text)) warn_of_readers("--nodes-file", *file_);
    return options_of(text, "--nodes-file " + *file_);
  }
  if (!invocation_.nodes_variable.empty()) {
    return options_of(invocation_.nodes_variable, "REDLOCK_NODES");
  }
  constexpr auto* variable = "REDLOCK_NODES_FILE";
  if (const char* file = std::getenv(variable); file != nullptr && *file != '\0') {
    auto options = options_of(std::nullopt, variable);
    if (std::ranges::any_of(options.nodes, has_password)) warn_of_readers(variable, file);
    return options;
  }
  throw Exit(exit_usage,
             "which nodes? Give --nodes NODE,NODE,... or --nodes-file FILE, or set REDLOCK_NODES "
             "or REDLOCK_NODES_FILE (`redlock fleet up` starts nodes on this machine and prints "
             "the line)");
}

/// A file that is missing now is a mistake; a file that is missing later is perhaps only late. The
/// argument may be the password itself by mistake, so it is not repeated.
void NodeOptions::give_password(ClientOptions& options) const {
  if (password_file_) {
    auto password = password_from_file(*password_file_);
    if (!password) throw Exit(exit_usage, "--password-file: " + password.error().message);
    options.password = std::move(*password);
    warn_of_readers("--password-file", *password_file_);
  } else if (const char* file = std::getenv("REDLOCK_PASSWORD_FILE"); options.password) {
    warn_of_readers("REDLOCK_PASSWORD_FILE", file);
  }
}

void NodeOptions::give_trace(ClientOptions& options) const {
  if (!trace_) return;
  try {
    options.trace = trace_to_file(*trace_);
  } catch (const std::system_error& error) {
    throw Exit(exit_usage, fmt::format("--trace: {}", error.what()));
  }
}

/// One or two nodes are too few for a set that goes on without a node: they are some of its
/// members, as a rule, and say which ones there are. If they do not, the caller finds out why.
std::optional<ClientOptions> NodeOptions::found_options(const ClientOptions& listed) {
  constexpr std::size_t fewest = 3;
  if (listed.nodes.size() >= fewest || listed.quarantine == Quarantine::off) return std::nullopt;
  auto whole = find_set(listed);
  if (!whole || whole->nodes.size() == listed.nodes.size()) return std::nullopt;
  return std::move(*whole);
}

ClientOptions NodeOptions::client_options() const {
  auto options = listed_options();
  return found_options(options).value_or(options);
}

ClientOptions NodeOptions::listed_options() const {
  auto options = options_with_nodes();
  give_password(options);
  give_trace(options);
  options.node_timeout = node_timeout_.value_or(options.node_timeout);
  options.max_lease = max_lease_.value_or(options.max_lease);
  options.lease = std::min(ClientOptions{}.lease, max_lease_.value_or(options.lease));
  options.tls = {.ca = tls_ca_.value_or(options.tls.ca),
                 .certificate = tls_certificate_.value_or(options.tls.certificate),
                 .key = tls_key_.value_or(options.tls.key),
                 .name = tls_name_.value_or(options.tls.name)};
  options.client_name = "redlock-cli";
  return options;
}

Client NodeOptions::connect() const {
  return make_client(client_options());
}

namespace {

Client patient_client(ClientOptions options) {
  options.connect_timeout = std::max(options.connect_timeout, options.node_timeout);
  return make_client(std::move(options));
}

}  // namespace

Client NodeOptions::connect_to_look() const {
  return patient_client(client_options());
}

Client NodeOptions::connect_to_change(const std::string& label) const {
  auto options = listed_options();
  options.max_lease = {};
  options.label = label;
  return patient_client(found_options(options).value_or(options));
}

void NodeOptions::check_markers(const Client& client) {
  const auto marked = Admin(client).marked_set();
  if (!marked) throw failure(marked.error());
  if (!*marked) return;
  const auto nodes = client.options().nodes.size();
  const auto max_lease = client.options().max_lease;
  if ((*marked)->nodes != nodes) {
    throw Exit(exit_configuration,
               fmt::format("the list has {} nodes, and the nodes' markers say that their set has "
                           "{}; give the whole list, the same to every client",
                           nodes, (*marked)->nodes));
  }
  if (max_lease > (*marked)->max_lease) {
    throw Exit(exit_configuration,
               fmt::format("--max-lease (REDLOCK_MAX_LEASE) is {}, and the nodes' markers say {}; "
                           "leave it out, or raise the set's (redlock set max-lease)",
                           format_duration(max_lease), format_duration((*marked)->max_lease)));
  }
}

Client make_client(ClientOptions options) {
  auto client = Client::create(std::move(options));
  if (!client) throw failure(client.error());
  return std::move(*client);
}

}  // namespace redlock::cli
