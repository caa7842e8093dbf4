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

const char* to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::free:
      return "free";
    case Verdict::no_majority:
      return "no_majority";
    case Verdict::unknown:
      return "unknown";
  }
  return "unknown";
}

const char* to_string(ListedAs kind) noexcept {
  switch (kind) {
    case ListedAs::lock:
      return "lock";
    case ListedAs::several_owners:
      return "several_owners";
    case ListedAs::foreign_type:
      return "foreign_type";
    case ListedAs::unread:
      return "unread";
  }
  return "unknown";
}

const char* to_string(Forced outcome) noexcept {
  switch (outcome) {
    case Forced::released:
      return "released";
    case Forced::nothing_held:
      return "nothing_held";
    case Forced::unknown:
      return "unknown";
  }
  return "unknown";
}

const char* to_string(ForcedHere what) noexcept {
  switch (what) {
    case ForcedHere::removed:
      return "removed";
    case ForcedHere::not_held:
      return "not_held";
    case ForcedHere::not_told:
      return "not_told";
    case ForcedHere::unreachable:
      return "unreachable";
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

const char* to_string(Adoption adoption) noexcept {
  switch (adoption) {
    case Adoption::written:
      return "written";
    case Adoption::already_there:
      return "already_there";
    case Adoption::disagrees:
      return "disagrees";
    case Adoption::unconfirmed:
      return "unconfirmed";
    case Adoption::waits:
      return "waits";
    case Adoption::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace redlock
