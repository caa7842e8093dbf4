// SPDX-License-Identifier: MIT
#include "cli/redlock/lock_report.hpp"

#include <fmt/core.h>
#include <memory>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/holder.hpp"
#include "cli/redlock/node_reports.hpp"

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

LockLook::LockLook(CLI::App& app, const Invocation& invocation, Look (*look_of)(LockReport))
    : look_of_(look_of), nodes_(app, invocation), look_(app) {
  add_name_option(app, name_);
}

int LockLook::run() {
  return look_.show([this] {
    auto client = std::make_shared<Client>(nodes_.connect_to_look());
    return [this, client] {
      return look_of_(
          report_of(*client, [this](const Admin& admin) { return admin.inspect(name_); }));
    };
  });
}

}  // namespace redlock::cli
