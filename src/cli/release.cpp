// SPDX-License-Identifier: MIT
// redlock release: gives back a lock taken by `redlock acquire`.
#include <fmt/core.h>
#include <memory>

#include <redlock/admin.hpp>
#include <redlock/redlock.hpp>

#include "cli/exit_code.hpp"
#include "cli/grant_output.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace redlock::cli {
namespace {

constexpr auto* release_footer = R"help(
Every node is told. Prints what a quorum of nodes found:
  released      they had it for this owner and deleted it                             (exit 0)
  already_gone  too few still had it: it had expired, or somebody else has it now     (exit 75)
  unknown       too few answered; what is left ends with the lease at the latest      (exit 69,
                or 78 if it is their configuration that keeps them from answering)

Example:
  redlock release deploy --owner "$owner")help";

class Release {
 public:
  Release(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_name_option(app, grant_.name);
    add_owner_option(app, grant_.owner);
    add_format_option(app, format_);
  }

  int run() {
    const auto client = nodes_.connect();
    const auto released = client.lock(grant_.name).release(grant_);
    if (!released) throw failure(released.error());
    const std::string result = to_string(*released);
    print(format_ == Format::json ? to_text({{"name", grant_.name}, {"result", result}})
                                  : result + "\n");
    switch (*released) {
      case Released::released:
        leave_at_once(exit_ok);
      case Released::already_gone:
        return exit_contended;
      case Released::unknown:
      case Released::still_held:  // never said of a grant
        break;
    }
    throw failure(why_unknown(client));
  }

 private:
  /// The answer to a release has no votes; the nodes are asked once more, for their reasons.
  Error why_unknown(const Client& client) const {
    Error error{Errc::no_quorum, "it is not known whether " + grant_.name + " was released", {}};
    const auto report = Admin(client).inspect(grant_.name);
    if (!report) return error;
    for (const NodeLock& node : report->nodes) {
      const auto vote = node.trouble.cause == Cause::none ? Vote::refused : Vote::unavailable;
      error.votes.push_back({node.node, vote, node.trouble.cause, node.trouble.detail});
    }
    if (const auto why = unavailable_nodes(error.votes); !why.empty()) error.message += ": " + why;
    return error;
  }

  NodeOptions nodes_;
  Grant grant_;
  Format format_ = Format::table;
};

}  // namespace

void add_release(CLI::App& app, Invocation& invocation) {
  add_command<Release>(app, invocation,
                       {"release", "Give back a lock taken by acquire",
                        "redlock release NAME --owner OWNER [OPTIONS]", release_footer});
}

}  // namespace redlock::cli
