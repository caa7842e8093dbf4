// SPDX-License-Identifier: MIT
#include "cli/redlock/lock_report.hpp"

#include <fmt/core.h>
#include <memory>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/holder.hpp"

namespace redlock::cli {

std::string verdict_lines(const LockReport& report) {
  const auto name = printable(report.name);
  const auto nodes = report.nodes.size();
  switch (report.verdict) {
    case Verdict::held:
      return fmt::format("{} is held by {} on {} of {} nodes\n", name, printable(report.owner),
                         report.nodes_of_owner, nodes) +
             wrapped("taken by: " + in_words(report.holder), columns(), 2);
    case Verdict::free:
      return fmt::format("{} is free on a quorum of {} nodes\n", name, nodes);
    case Verdict::no_majority:
      return fmt::format(
          "{} is held by nobody on a quorum ({} of {} nodes), and not free on one "
          "either\n",
          name, report.quorum, nodes);
    case Verdict::unknown:
      break;
  }
  return fmt::format("{}: {} of {} nodes answered ({} must agree)\n", name,
                     painted(Colour::red, "too few"), nodes, report.quorum);
}

int exit_code_of_unknown(const LockReport& report) {
  Error error{Errc::no_quorum, {}, {}};
  for (const auto& node : report.nodes) {
    const auto vote = node.answered() ? Vote::refused : Vote::unavailable;
    error.votes.push_back({node.node, vote, node.trouble.cause, node.trouble.detail});
  }
  return exit_code_for(error);
}

LockLook::LockLook(CLI::App& app, const Invocation& invocation, Look (*look_of)(LockReport))
    : look_of_(look_of), nodes_(app, invocation), look_(app) {
  add_name_option(app, name_);
}

int LockLook::run() {
  return look_.show([this] {
    auto client = std::make_shared<Client>(nodes_.connect_to_look());
    return [this, client]() mutable {
      auto report = inspect(*client);
      const bool too_few = report.quorum > report.nodes.size();
      if (too_few || (report.verdict == Verdict::unknown &&
                      exit_code_of_unknown(report) == exit_configuration)) {
        if (auto other = nodes_.as_marked(*client)) {
          client = std::make_shared<Client>(std::move(*other));
          report = inspect(*client);
        }
      }
      return look_of_(std::move(report));
    };
  });
}

LockReport LockLook::inspect(const Client& client) const {
  auto report = Admin(client).inspect(name_);
  if (!report) throw failure(report.error());
  return std::move(*report);
}

}  // namespace redlock::cli
