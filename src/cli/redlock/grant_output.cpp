// SPDX-License-Identifier: MIT
#include "cli/redlock/grant_output.hpp"

#include <fmt/core.h>

namespace redlock::cli {

std::string grant_line(const Lease& lease, Format format) {
  const auto valid_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(lease.remaining()).count();
  const auto token = lease.token();
  if (format == Format::json) {
    return to_text({{"name", lease.name()},
                    {"owner", lease.owner()},
                    {"token", token != 0 ? Json(token) : Json(nullptr)},
                    {"valid_ms", valid_ms}});
  }
  const auto known_token = token != 0 ? fmt::format(" token={}", token) : std::string();
  return fmt::format("owner={}{} valid_ms={}\n", lease.owner(), known_token, valid_ms);
}

void print_grant(const Lease& lease, Format format) {
  print(grant_line(lease, format));
}

}  // namespace redlock::cli
