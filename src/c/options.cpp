// SPDX-License-Identifier: MIT
#include "c/options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "c/stop.hpp"

namespace redlock::c {
namespace {

tl::unexpected<Error> bad_option(std::string sentence) {
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(sentence), {}});
}

/// The options of a program that was compiled with the header of this version, of an older one,
/// whose struct ends before this one, or of a later one, if it sets nothing new.
template <typename Options>
Result<Options> of_this_version(const Options* given, const Options& defaults, const char* init) {
  if (given == nullptr) return defaults;
  // No header's struct has such a size: the size was not set, or is left over in the memory.
  constexpr std::size_t longest = 4'096;
  const std::size_t size = given->size;
  if (size < sizeof size || size > longest || size % alignof(Options) != 0) {
    return bad_option(std::string("the options have no size: begin with ") + init);
  }
  const auto* const begin = reinterpret_cast<const unsigned char*>(given);
  const std::size_t common = std::min(size, sizeof(Options));
  if (std::any_of(begin + common, begin + size, [](unsigned char byte) { return byte != 0; })) {
    return bad_option(
        "an option is set that this version of redlock does not know: install a newer one, or "
        "leave it out");
  }
  Options known = defaults;
  std::memcpy(&known, given, common);
  return known;
}

// Padding at the end of an older program's struct may hold any bytes. So the struct has no padding,
// and a field that is added at the end begins behind the whole struct of an older program.
static_assert(offsetof(redlock_client_options, connect_timeout_ms) + sizeof(std::int64_t) ==
              sizeof(redlock_client_options));
static_assert(offsetof(redlock_acquire_options, stop) + sizeof(redlock_stop*) ==
              sizeof(redlock_acquire_options));

void set(std::string& option, const char* given) {
  if (given != nullptr) option = given;
}

void set(std::chrono::milliseconds& option, std::int64_t given) {
  if (given != 0) option = std::chrono::milliseconds(given);
}

Result<std::optional<Ordering>> to_ordering(redlock_ordering ordering) {
  switch (ordering) {
    case REDLOCK_ORDERING_DEFAULT:
      return std::nullopt;
    case REDLOCK_FIFO:
      return Ordering::fifo;
    case REDLOCK_BARGING:
      return Ordering::barging;
  }
  return bad_option("ordering is none of REDLOCK_FIFO, REDLOCK_BARGING and the default");
}

Result<Renewal> to_renewal(redlock_renewal renewal) {
  switch (renewal) {
    case REDLOCK_RENEW_WHEN_NO_LEASE_GIVEN:
      return Renewal::when_no_lease_given;
    case REDLOCK_RENEW_ALWAYS:
      return Renewal::always;
    case REDLOCK_RENEW_NEVER:
      return Renewal::never;
  }
  return bad_option("renewal is none of the values REDLOCK_RENEW_...");
}

Result<ClientOptions> with_nodes(const char* nodes) {
  if (nodes == nullptr) return ClientOptions::from_env();
  auto list = parse_nodes(nodes);
  if (!list) return tl::make_unexpected(std::move(list.error()));
  ClientOptions options;
  options.nodes = std::move(*list);
  return options;
}

std::optional<BootClock::time_point> to_deadline(std::int64_t milliseconds) {
  constexpr std::chrono::hours century(24 * 36'525);
  const auto after = to_duration(milliseconds);
  if (milliseconds == 0 || after > century) return std::nullopt;
  return BootClock::now() + std::max(after, std::chrono::milliseconds(0));  // it may be over
}

template <typename Duration>
void set_unless_zero(std::optional<Duration>& option, std::int64_t given) {
  if (given != 0) option = Duration(given);
}

}  // namespace

std::chrono::milliseconds to_duration(std::int64_t milliseconds) noexcept {
  return milliseconds == REDLOCK_FOREVER ? forever : std::chrono::milliseconds(milliseconds);
}

Result<ClientOptions> to_options(const redlock_client_options* given) {
  const auto known = of_this_version<redlock_client_options>(given, REDLOCK_CLIENT_OPTIONS_INIT,
                                                             "REDLOCK_CLIENT_OPTIONS_INIT");
  if (!known) return tl::make_unexpected(known.error());
  auto options = with_nodes(known->nodes);
  if (!options) return options;
  const auto ordering = to_ordering(known->ordering);
  if (!ordering) return tl::make_unexpected(ordering.error());
  if (*ordering) options->ordering = **ordering;
  if (known->password_file != nullptr) {
    auto password = password_from_file(known->password_file);
    if (!password) {
      password.error().message.insert(0, "password_file: ");
      return tl::make_unexpected(std::move(password.error()));
    }
    options->password = std::move(*password);
  }
  set(options->tls.ca, known->tls_ca);
  set(options->tls.certificate, known->tls_certificate);
  set(options->tls.key, known->tls_key);
  set(options->tls.name, known->tls_name);
  set(options->client_name, known->client_name);
  set(options->label, known->label);
  set(options->lease, known->lease_ms);
  set(options->max_lease, known->max_lease_ms);
  set(options->node_timeout, known->node_timeout_ms);
  set(options->connect_timeout, known->connect_timeout_ms);
  if (known->without_quarantine != 0) options->quarantine = Quarantine::off;
  options->warn_on_stderr = known->without_warnings == 0;
  return options;
}

Result<AcquireCall> to_options(const redlock_acquire_options* given) {
  const auto known = of_this_version<redlock_acquire_options>(given, REDLOCK_ACQUIRE_OPTIONS_INIT,
                                                              "REDLOCK_ACQUIRE_OPTIONS_INIT");
  if (!known) return tl::make_unexpected(known.error());
  const auto ordering = to_ordering(known->ordering);
  if (!ordering) return tl::make_unexpected(ordering.error());
  const auto renewal = to_renewal(known->renewal);
  if (!renewal) return tl::make_unexpected(renewal.error());
  AcquireCall call;
  AcquireOptions& options = call.options;
  options.renewal = *renewal;
  options.wait = to_duration(known->wait_ms);
  options.deadline = to_deadline(known->deadline_ms);
  options.ordering = *ordering;
  set_unless_zero(options.lease, known->lease_ms);
  set_unless_zero(options.min_validity, known->min_validity_ms);
  set_unless_zero(options.max_hold, known->max_hold_ms);
  if (known->stop != nullptr) call.stop = known->stop->source.get_token();
  return call;
}

}  // namespace redlock::c
