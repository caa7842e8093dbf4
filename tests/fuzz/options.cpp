// SPDX-License-Identifier: MIT
// Options as programs may give them: any durations, and names, owners and files as people write
// them, each up to the end of its line. What is accepted is within the bounds that are promised,
// and a refusal is one printable sentence that repeats no password.
#include <algorithm>
#include <bit>
#include <chrono>
#include <doctest/doctest.h>
#include <string>
#include <string_view>

#include "client/options_check.hpp"
#include "fuzz/inputs.hpp"

namespace redlock::fuzz {
namespace {

using std::chrono::milliseconds;

/// Any order of magnitude, with either sign.
milliseconds take_duration(std::string_view& input) {
  const std::int64_t mantissa = take_byte(input);
  const unsigned exponent = take_byte(input);
  const std::int64_t value = mantissa << (exponent % 56);
  return milliseconds(exponent < 128 ? value : -value);
}

double take_factor(std::string_view& input) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | take_byte(input);
  return std::bit_cast<double>(bits);
}

void check_refusal(const Error& error) {
  CHECK(error.code == Errc::invalid_argument);
  CHECK_FALSE(error.message.empty());
  CHECK(error.message.find("sesame") == std::string::npos);
  CHECK(std::ranges::none_of(error.message, [](unsigned char c) { return c < ' ' || c == 0x7f; }));
}

ClientOptions take_options(std::string_view& input) {
  ClientOptions options;
  options.nodes = {"rediss://user:sesame@host"};
  for (milliseconds* duration :
       {&options.lease, &options.max_lease, &options.node_timeout, &options.min_validity,
        &options.retry_min, &options.retry_max, &options.retry_cap, &options.resolve_timeout,
        &options.connect_timeout}) {
    if (const auto given = take_duration(input); given != milliseconds::zero()) *duration = given;
  }
  if (const double given = take_factor(input); given != 0) options.drift_factor = given;
  for (std::string* text : {&options.client_name, &options.tls.name, &options.tls.certificate,
                            &options.tls.key, &options.tls.ca}) {
    if (const auto given = take_part(input, '\n'); !given.empty()) *text = given;
  }
  if (const auto given = take_part(input, '\n'); !given.empty()) options.nodes.emplace_back(given);
  return options;
}

/// Zero: as long as the nodes' markers say.
bool allowed(milliseconds lease, const ClientOptions& options) {
  return options.max_lease == milliseconds::zero() || lease <= options.max_lease;
}

}  // namespace

void fuzz_one(std::string_view input) {
  if (input.find("sesame") != std::string_view::npos) return;  // a name may be repeated
  AcquireOptions acquire;
  acquire.wait = take_duration(input);
  if (const auto given = take_duration(input); given.count() % 2 != 0) acquire.lease = given;
  if (const auto given = take_duration(input); given.count() % 2 != 0) acquire.max_hold = given;
  if (const auto given = take_duration(input); given.count() % 2 != 0) acquire.min_validity = given;
  const ClientOptions options = take_options(input);

  if (const auto nodes = client::check_client_options(options)) {
    CHECK(nodes->size() == options.nodes.size());
    CHECK(options.lease > milliseconds::zero());
    CHECK(allowed(options.lease, options));
    CHECK(options.min_validity < options.lease);
    const auto lease = client::check_acquire_options(acquire, options);
    if (lease) {
      CHECK(*lease > milliseconds::zero());
      CHECK(allowed(*lease, options));
    } else {
      check_refusal(lease.error());
    }
  } else {
    check_refusal(nodes.error());
  }

  const std::string_view owner = take_part(input, '\n');
  if (const auto parsed = client::parse_owner(owner)) {
    CHECK(owner.size() == 32);
  } else {
    check_refusal(parsed.error());
  }
  if (const auto accepted = client::check_name(input)) {
    CHECK_FALSE(input.empty());
    CHECK(input.size() <= 512);
  } else {
    check_refusal(accepted.error());
  }
}

}  // namespace redlock::fuzz
