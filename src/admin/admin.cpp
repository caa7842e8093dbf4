// SPDX-License-Identifier: MIT
#include <algorithm>

#include <redlock/admin.hpp>

namespace redlock {

Admin::Admin(const Client& client) : client_(&client) {}

Fitness Examination::fitness() const noexcept {
  auto worst = Severity::hint;
  const auto weigh = [&worst](const std::vector<Problem>& found) {
    for (const Problem& problem : found) worst = std::min(worst, problem.severity);
  };
  weigh(problems);
  for (const NodeHealth& node : nodes) weigh(node.problems);
  if (worst == Severity::error) return Fitness::unsafe;
  return worst == Severity::warning ? Fitness::degraded : Fitness::healthy;
}

bool Examination::safe() const noexcept {
  return fitness() != Fitness::unsafe;
}

const char* to_string(Fitness fitness) noexcept {
  switch (fitness) {
    case Fitness::healthy:
      return "healthy";
    case Fitness::degraded:
      return "degraded";
    case Fitness::unsafe:
      return "unsafe";
  }
  return "unknown";
}

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::hint:
      return "hint";
  }
  return "unknown";
}

}  // namespace redlock
