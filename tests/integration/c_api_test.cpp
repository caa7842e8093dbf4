// SPDX-License-Identifier: MIT
// The C interface: what it gives and takes, its last error as JSON, and the descriptor of a loss.
// That C11 and Python can use it is shown by tests/consumer.
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <poll.h>

#include <redlock/redlock.h>
#include <redlock/version.hpp>

#include "c/last_error.hpp"
#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

template <auto destroy>
struct Destroyer {
  void operator()(auto* handle) const noexcept { destroy(handle); }
};
using OwnedClient = std::unique_ptr<redlock_client, Destroyer<redlock_client_destroy>>;
using OwnedLease = std::unique_ptr<redlock_lease, Destroyer<redlock_lease_destroy>>;
using OwnedStop = std::unique_ptr<redlock_stop, Destroyer<redlock_stop_destroy>>;

constexpr std::int64_t patience_ms = std::chrono::milliseconds(patience).count();

std::string list_of(const Fleet& fleet) {
  std::string nodes;
  for (const auto& uri : fleet.uris()) nodes += uri + " ";
  return nodes;
}

/// For nodes that are as new as the test, and answer in their time.
redlock_client_options options_in_c(const char* nodes) {
  redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
  options.nodes = nodes;
  options.node_timeout_ms = 10'000;
  options.connect_timeout_ms = 10'000;
  options.without_quarantine = 1;
  return options;
}

OwnedClient client_in_c(const redlock_client_options* options) {
  redlock_client* client = nullptr;
  REQUIRE_MESSAGE(redlock_client_create(options, &client) == REDLOCK_OK, redlock_last_error());
  return OwnedClient(client);
}

OwnedClient client_in_c(const Fleet& fleet) {
  const std::string nodes = list_of(fleet);
  const redlock_client_options options = options_in_c(nodes.c_str());
  return client_in_c(&options);
}

OwnedLease lease_in_c(const OwnedClient& client, const char* name,
                      redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT) {
  options.wait_ms = patience_ms;
  redlock_lease* lease = nullptr;
  REQUIRE_MESSAGE(redlock_acquire(client.get(), name, &options, &lease) == REDLOCK_OK,
                  redlock_last_error());
  return OwnedLease(lease);
}

redlock_status try_in_c(const OwnedClient& client, const char* name,
                        const redlock_acquire_options& options = REDLOCK_ACQUIRE_OPTIONS_INIT) {
  redlock_lease* lease = nullptr;
  const auto status = redlock_acquire(client.get(), name, &options, &lease);
  const OwnedLease owned(lease);
  CHECK((lease == nullptr) == (status != REDLOCK_OK));
  return status;
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

TEST_CASE("C: a lock is taken, used, given back and taken again") {
  const auto client = client_in_c(three_nodes());
  const auto lease = lease_in_c(client, "c-simple");
  const std::uint64_t token = redlock_lease_token(lease.get());
  CHECK(token > 0);
  CHECK(redlock_lease_name(lease.get()) == std::string("c-simple"));
  CHECK(std::strlen(redlock_lease_owner(lease.get())) == 32);
  CHECK(redlock_lease_valid(lease.get()) == 1);
  CHECK(redlock_lease_remaining_ms(lease.get()) > 0);
  CHECK(redlock_lease_remaining_ms(lease.get()) < 30'000);
  CHECK(redlock_lease_loss(lease.get()) == REDLOCK_NOT_LOST);
  CHECK(nodes_with_lock(three_nodes(), "c-simple") >= 2);

  CHECK(redlock_lease_confirm(lease.get()) == REDLOCK_OK);
  CHECK(redlock_lease_extend(lease.get(), 50'000) == REDLOCK_OK);
  CHECK(redlock_lease_remaining_ms(lease.get()) > 30'000);

  redlock_released found = REDLOCK_UNKNOWN;
  REQUIRE(redlock_lease_release(lease.get(), &found) == REDLOCK_OK);
  CHECK(found == REDLOCK_RELEASED);
  CHECK(soon_free_everywhere(three_nodes(), "c-simple"));
  CHECK(redlock_lease_valid(lease.get()) == 0);
  CHECK(redlock_lease_token(lease.get()) == 0);
  CHECK(redlock_lease_name(lease.get()) == std::string("c-simple"));
  CHECK(redlock_lease_release(lease.get(), nullptr) == REDLOCK_LOST);

  // Tokens grow, and destroying a lease gives it back.
  CHECK(redlock_lease_token(lease_in_c(client, "c-simple").get()) > token);
  CHECK(soon_free_everywhere(three_nodes(), "c-simple"));
}

TEST_CASE("C: who fails has the reason, for people and for programs, on its own thread") {
  const auto client = client_in_c(three_nodes());
  const auto held = lease_in_c(client, "c-contended");
  CHECK(try_in_c(client, "c-contended") == REDLOCK_CONTENDED);
  const std::string sentence = redlock_last_error();
  CHECK(contains(sentence, "c-contended"));
  const auto json = nlohmann::json::parse(redlock_last_error_json());
  CHECK(json["status"] == 1);
  CHECK(json["code"] == redlock_status_name(REDLOCK_CONTENDED));
  CHECK(json["message"] == sentence);
  REQUIRE(json["votes"].size() == 3);
  CHECK(contains(json["votes"][0]["node"].get<std::string>(), "127.0.0.1:"));
  CHECK(contains(json["votes"].dump(), "refused"));

  std::thread([] {
    CHECK(redlock_last_error() == std::string());
    CHECK(redlock_last_error_json() == std::string());
  }).join();
  CHECK(try_in_c(client, "c-free") == REDLOCK_OK);
  CHECK(redlock_last_error() == sentence);
}

TEST_CASE("C: an error's texts are JSON whatever bytes they have") {
  // What is no character, and what is unseen, is in tests/text.
  const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"quote\" backslash\\", "quote\" backslash\\"},
      {"tab\t escape\x1b delete\x7f", "tab\t escape\x1b delete\x7f"},
      {"r\xC3\xA4tsel \xE2\x82\xAC \xF0\x9F\x94\x92",
       "r\xC3\xA4tsel \xE2\x82\xAC \xF0\x9F\x94\x92"},
      {"\xC3 \xE2\x82 \xF0\x9F\x94 ", bad + " " + bad + bad + " " + bad + bad + bad + " "}};
  for (const auto& text : texts) {
    const auto& [given, read] = text;
    CAPTURE(text.first);
    const Error error{Errc::no_quorum,
                      given,
                      {{given, Vote::unavailable, Cause::tls, given},
                       {"second", Vote::granted, Cause::none, ""}}};
    const auto json = nlohmann::json::parse(c::to_json(error));
    CHECK(json["message"] == read);
    REQUIRE(json["votes"].size() == 2);
    CHECK(json["votes"][0]["node"] == read);
    CHECK(json["votes"][0]["detail"] == read);
    CHECK(json["votes"][0]["cause"] == "tls");
    CHECK(json["votes"][1]["vote"] == "granted");
  }
  const Error unseen{Errc::lost, "a\xE2\x80\xAE\xF3\xA0\x81\x81\xC2\x9B", {}};
  CHECK(contains(c::to_json(unseen), "\"a\\u202e\\udb40\\udc41\\u009b\""));
}

TEST_CASE("C: an argument that cannot work is refused with a sentence") {
  const auto client = client_in_c(three_nodes());
  redlock_lease* lease = nullptr;
  CHECK(redlock_client_create(nullptr, nullptr) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_acquire(nullptr, "a", nullptr, &lease) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_acquire(client.get(), nullptr, nullptr, &lease) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_acquire(client.get(), "a", nullptr, nullptr) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_last_error() == std::string("lease is NULL: give the address of a pointer"));
  CHECK(redlock_lease_extend(nullptr, 1) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_lease_confirm(nullptr) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_lease_release(nullptr, nullptr) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_client_close(nullptr, 0, nullptr) == REDLOCK_INVALID_ARGUMENT);
  CHECK(redlock_lease_lost_fd(nullptr) == -1);
  CHECK(redlock_lease_token(nullptr) == 0);
  CHECK(redlock_lease_valid(nullptr) == 0);
  CHECK(redlock_lease_name(nullptr) == std::string());
  redlock_client_destroy(nullptr);
  redlock_lease_destroy(nullptr);
  redlock_stop_destroy(nullptr);
  redlock_stop_request(nullptr);

  redlock_client* none = client.get();
  redlock_client_options nodes = REDLOCK_CLIENT_OPTIONS_INIT;
  nodes.nodes = "no port here:";
  CHECK(redlock_client_create(&nodes, &none) == REDLOCK_INVALID_ARGUMENT);
  CHECK(none == nullptr);
}

TEST_CASE("C: each option reaches what it is for") {
  const std::string nodes = list_of(three_nodes());
  redlock_client_options options = options_in_c(nodes.c_str());
  options.client_name = "c-client-name";
  options.label = "c-label";
  options.lease_ms = 20'000;
  const OwnedClient client = client_in_c(&options);
  {
    const auto lease = lease_in_c(client, "c-options");
    CHECK(redlock_lease_remaining_ms(lease.get()) < 20'000);
    REQUIRE(soon_locked_everywhere(three_nodes(), "c-options"));
    CHECK(contains(three_nodes().run(0, {"CLIENT", "LIST"}), "name=c-client-name "));
    CHECK(contains(three_nodes().run(0, {"HGET", "redlock:lock:{c-options}", "@"}), "c-label"));
  }
  redlock_acquire_options never = REDLOCK_ACQUIRE_OPTIONS_INIT;
  never.lease_ms = 5'000;
  never.min_validity_ms = 4'990;  // more than the drift allowance leaves
  CHECK(try_in_c(client, "c-min-validity", never) == REDLOCK_INVALID_ARGUMENT);
  CHECK(contains(redlock_last_error(), "min_validity"));

  redlock_acquire_options held = REDLOCK_ACQUIRE_OPTIONS_INIT;
  held.lease_ms = 900;
  held.renewal = REDLOCK_RENEW_ALWAYS;
  held.max_hold_ms = 10;
  const auto lease = lease_in_c(client, "c-max-hold", held);
  CHECK(is_readable(redlock_lease_lost_fd(lease.get()), static_cast<int>(patience_ms)));
}

TEST_CASE("C: an option that is refused is named, so each is where it belongs") {
  using Options = redlock_client_options;
  const auto check_refused = [](const Options& options, const char* name) {
    CAPTURE(name);
    redlock_client* none = nullptr;
    CHECK(redlock_client_create(&options, &none) == REDLOCK_INVALID_ARGUMENT);
    CHECK(std::string_view(redlock_last_error()).starts_with(name));
  };
  const std::pair<const char * Options::*, const char*> texts[] = {
      {&Options::tls_ca, "tls.ca "},
      {&Options::tls_name, "tls.name "},
      {&Options::tls_certificate, "tls.certificate "},
      {&Options::tls_key, "tls.key "},
      {&Options::password_file, "password_file: "}};
  for (const auto& [member, name] : texts) {
    Options options = options_in_c("127.0.0.1:1");
    options.*member = "a";
    check_refused(options, name);
  }
  const std::pair<std::int64_t Options::*, const char*> times[] = {
      {&Options::lease_ms, "lease "},
      {&Options::max_lease_ms, "max_lease "},
      {&Options::node_timeout_ms, "node_timeout "},
      {&Options::connect_timeout_ms, "connect_timeout "}};
  for (const auto& [member, name] : times) {
    Options options = options_in_c("127.0.0.1:1");
    options.*member = -1;
    check_refused(options, name);
  }
}

TEST_CASE("C: options of another version are told apart by their size") {
  struct Later {
    redlock_acquire_options known;
    std::int64_t added;
  };
  const auto client = client_in_c(three_nodes());
  Later later{REDLOCK_ACQUIRE_OPTIONS_INIT, 0};
  later.known.size = sizeof later;
  CHECK(try_in_c(client, "c-size", later.known) == REDLOCK_OK);
  later.added = 1;
  CHECK(try_in_c(client, "c-size", later.known) == REDLOCK_INVALID_ARGUMENT);

  const auto check_refused = [&](const auto& change) {
    redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    change(options);
    CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);
  };
  check_refused([](auto& options) { options.size = 0; });
  CHECK(contains(redlock_last_error(), "REDLOCK_ACQUIRE_OPTIONS_INIT"));
  // What an option that was never set has of the memory before is no reason to read so far.
  check_refused([](auto& options) { options.size = std::numeric_limits<std::size_t>::max() / 2; });
  check_refused([](auto& options) { options.ordering = static_cast<redlock_ordering>(3); });
  check_refused([](auto& options) { options.renewal = static_cast<redlock_renewal>(3); });
  check_refused([](auto& options) { options.lease_ms = -5; });
}

// The options of a header that has less: nothing behind them is read, which the address sanitizer
// sees, as they are alone on the heap.

struct EarlierAcquireOptions {
  size_t size;
  int64_t lease_ms;
  redlock_renewal renewal;
  int64_t wait_ms;
};
static_assert(offsetof(EarlierAcquireOptions, wait_ms) ==
              offsetof(redlock_acquire_options, wait_ms));

struct EarlierClientOptions {
  size_t size;
  const char* nodes;
};
static_assert(offsetof(EarlierClientOptions, nodes) == offsetof(redlock_client_options, nodes));

TEST_CASE("C: options of an older header are taken, and what they do not have has its default") {
  // Of no node: this client has the quarantine, and would mark those of the other tests.
  const auto of_client = std::make_unique<EarlierClientOptions>(
      EarlierClientOptions{sizeof(EarlierClientOptions), "127.0.0.1:1"});
  CHECK(client_in_c(reinterpret_cast<const redlock_client_options*>(of_client.get())) != nullptr);

  const auto client = client_in_c(three_nodes());
  const auto acquire = [&](const char* name, const void* options) {
    redlock_lease* taken = nullptr;
    REQUIRE_MESSAGE(
        redlock_acquire(client.get(), name, static_cast<const redlock_acquire_options*>(options),
                        &taken) == REDLOCK_OK,
        redlock_last_error());
    return OwnedLease(taken);
  };
  const auto of_call = std::make_unique<EarlierAcquireOptions>(EarlierAcquireOptions{
      sizeof(EarlierAcquireOptions), 20'000, REDLOCK_RENEW_NEVER, patience_ms});
  CHECK(redlock_lease_remaining_ms(acquire("c-older", of_call.get()).get()) <= 20'000);
  // One that has not even a lease is the default, like NULL.
  const auto none = std::make_unique<size_t>(sizeof(size_t));
  CHECK(redlock_lease_remaining_ms(acquire("c-oldest", none.get()).get()) > 20'000);
}

TEST_CASE("C: a call that waits ends by its deadline, or when it is told to stop") {
  const auto client = client_in_c(three_nodes());
  const auto held = lease_in_c(client, "c-waits");
  redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.wait_ms = REDLOCK_FOREVER;
  options.deadline_ms = 50;
  CHECK(try_in_c(client, "c-waits", options) == REDLOCK_TIMED_OUT);

  redlock_stop* made = nullptr;
  REQUIRE(redlock_stop_create(&made) == REDLOCK_OK);
  OwnedStop stop(made);
  options.deadline_ms = std::numeric_limits<std::int64_t>::max();
  options.stop = stop.get();
  std::thread later([&] {
    std::this_thread::sleep_for(20ms);
    redlock_stop_request(stop.get());
  });
  CHECK(try_in_c(client, "c-waits", options) == REDLOCK_CANCELLED);
  later.join();
  CHECK(try_in_c(client, "c-other", options) == REDLOCK_CANCELLED);
}

TEST_CASE("C: the descriptor of a lease is readable once it is lost, not if it is given back") {
  const auto client = client_in_c(three_nodes());
  within_a_lease([&] {
    redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
    options.lease_ms = 2'000;
    const auto lease = lease_in_c(client, "c-lost", options);
    const int lost = redlock_lease_lost_fd(lease.get());
    REQUIRE(lost >= 0);
    CHECK(redlock_lease_lost_fd(lease.get()) == lost);
    const bool early = is_readable(lost, 0);
    if (early && redlock_lease_remaining_ms(lease.get()) < 1'000) return false;
    CHECK_FALSE(early);
    REQUIRE(is_readable(lost, static_cast<int>(patience_ms)));
    CHECK(is_readable(lost, 0));
    CHECK(redlock_lease_loss(lease.get()) == REDLOCK_LOSS_EXPIRED);
    return true;
  });
  const auto lease = lease_in_c(client, "c-descriptor");
  const int lost = redlock_lease_lost_fd(lease.get());
  REQUIRE(redlock_lease_release(lease.get(), nullptr) == REDLOCK_OK);
  CHECK_FALSE(is_readable(lost, 0));
}

TEST_CASE("C: closing a client gives its leases back, and says so") {
  const auto client = client_in_c(three_nodes());
  const auto lease = lease_in_c(client, "c-close");
  const int lost = redlock_lease_lost_fd(lease.get());
  redlock_close_report report{};
  REQUIRE(redlock_client_close(client.get(), patience_ms, &report) == REDLOCK_OK);
  CHECK(report.released == 1);
  CHECK(report.already_gone + report.unconfirmed == 0);
  CHECK(is_readable(lost, 0));
  CHECK(redlock_lease_loss(lease.get()) == REDLOCK_LOSS_CLOSED);
  CHECK(redlock_lease_valid(lease.get()) == 0);
  CHECK(redlock_lease_confirm(lease.get()) == REDLOCK_CLOSED);
  CHECK(try_in_c(client, "c-close") == REDLOCK_CLOSED);
  CHECK(redlock_client_close(client.get(), 0, nullptr) == REDLOCK_CLOSED);
}

TEST_CASE("C: without nodes a client reads the environment") {
  const std::string nodes = list_of(three_nodes());
  const ScopedVariable list("REDLOCK_NODES", nodes);
  const ScopedVariable quarantine("REDLOCK_QUARANTINE", "off");
  CHECK(lease_in_c(client_in_c(nullptr), "c-environment") != nullptr);
}

TEST_CASE("C: every status has a name") {
  CHECK(redlock_status_name(REDLOCK_OK) == std::string("ok"));
  CHECK(redlock_status_name(REDLOCK_NO_QUORUM) == std::string("no_quorum"));
  CHECK(redlock_status_name(REDLOCK_OUT_OF_MEMORY) == std::string("out_of_memory"));
  CHECK(std::strlen(redlock_status_name(static_cast<redlock_status>(77))) > 0);
  CHECK(redlock_version() == std::string(REDLOCK_VERSION));
}

}  // namespace
}  // namespace redlock::testing
