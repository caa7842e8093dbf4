// SPDX-License-Identifier: MIT
// Tolerant: a missing or odd field reads as empty or 0, and the handshake decides what that means.
#include "wire/info_text.hpp"

#include <algorithm>
#include <charconv>

namespace redlock::wire {
namespace {

std::int64_t parse_number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() ? value : 0;
}

/// Each kind of server has a name of its own for it.
std::string_view mode_in(const InfoText& info) {
  for (const std::string_view name : {"redis_mode", "server_mode", "redict_mode"}) {
    if (const auto mode = info.value(name); !mode.empty()) return mode;
  }
  return {};
}

}  // namespace

std::string_view InfoText::value(std::string_view key) const {
  for (std::size_t start = 0; start < text_.size();) {
    const std::size_t end = text_.find_first_of("\r\n", start);
    const std::string_view line = text_.substr(start, end - start);
    if (line.size() > key.size() && line[key.size()] == ':' && line.starts_with(key)) {
      return line.substr(key.size() + 1);
    }
    if (end == std::string_view::npos) break;
    start = end + 1;
  }
  return {};
}

std::int64_t InfoText::number(std::string_view key) const {
  return parse_number(value(key));
}

ServerVersion InfoText::version() const {
  return ServerVersion::parse(value("redis_version"));
}

std::chrono::seconds InfoText::uptime() const {
  constexpr std::chrono::seconds century = std::chrono::years(100);
  return std::clamp(std::chrono::seconds(number("uptime_in_seconds")), std::chrono::seconds::zero(),
                    century);
}

bool InfoText::is_replica() const {
  const std::string_view role = value("role");
  return role == "slave" || role == "replica";
}

bool InfoText::is_sentinel() const {
  return mode_in(*this) == "sentinel";
}

bool InfoText::is_in_cluster() const {
  return value("cluster_enabled") == "1" || mode_in(*this) == "cluster";
}

bool InfoText::was_replica() const {
  const std::string_view offset = value("second_repl_offset");
  return !offset.empty() && offset != "-1";
}

std::string InfoText::promotion() const {
  const std::string run(value("run_id"));
  return run.empty() ? run : run + ':' + std::string(value("master_replid"));
}

ServerVersion ServerVersion::parse(std::string_view text) {
  ServerVersion version;
  const std::size_t dot = text.find('.');
  version.major = parse_number(text.substr(0, dot));
  if (dot != std::string_view::npos) {
    const std::string_view rest = text.substr(dot + 1);
    version.minor = parse_number(rest.substr(0, rest.find('.')));
  }
  return version;
}

std::int64_t unix_microseconds(std::string_view seconds, std::string_view rest) {
  const std::int64_t whole = parse_number(seconds);
  const std::int64_t part = parse_number(rest);
  if (whole <= 0 || whole > 1'000'000'000'000 || part < 0 || part >= 1'000'000) return 0;
  return whole * 1'000'000 + part;
}

}  // namespace redlock::wire
