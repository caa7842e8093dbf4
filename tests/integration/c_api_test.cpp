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
#include "support/temporary_directory.hpp"

namespace redlock::testing {
namespace {

template <auto destroy>
struct Destroyer {
  template <typename Handle>
  void operator()(Handle* handle) const noexcept {
    destroy(handle);
  }
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

OwnedClient client_in_c(const Fleet& fleet) {
  const std::string nodes = list_of(fleet);
  redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
  options.nodes = nodes.c_str();
  options.node_timeout_ms = 10'000;
  options.connect_timeout_ms = 10'000;
  options.without_quarantine = 1;
  redlock_client* client = nullptr;
  REQUIRE_MESSAGE(redlock_client_create(&options, &client) == REDLOCK_OK, redlock_last_error());
  return OwnedClient(client);
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

nlohmann::json last_error_json() {
  return nlohmann::json::parse(redlock_last_error_json());
}

bool is_readable(int descriptor, int milliseconds) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

TEST_CASE("C: a lock is taken, used and given back") {
  const auto client = client_in_c(three_nodes());
  const auto lease = lease_in_c(client, "c-simple");
  CHECK(redlock_lease_token(lease.get()) > 0);
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
}

TEST_CASE("C: tokens grow, and destroying a lease gives it back") {
  const auto client = client_in_c(three_nodes());
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto lease = lease_in_c(client, "c-tokens");
    CHECK(redlock_lease_token(lease.get()) > last);
    last = redlock_lease_token(lease.get());
  }
  CHECK(soon_free_everywhere(three_nodes(), "c-tokens"));
}

TEST_CASE("C: who fails has the reason, for people and for programs, on its own thread") {
  const auto client = client_in_c(three_nodes());
  const auto held = lease_in_c(client, "c-contended");
  CHECK(try_in_c(client, "c-contended") == REDLOCK_CONTENDED);
  const std::string sentence = redlock_last_error();
  CHECK(sentence.find("c-contended") != std::string::npos);
  const auto json = last_error_json();
  CHECK(json["status"] == 1);
  CHECK(json["code"] == redlock_status_name(REDLOCK_CONTENDED));
  CHECK(json["message"] == sentence);
  REQUIRE(json["votes"].size() == 3);
  CHECK(json["votes"][0]["node"].get<std::string>().find("127.0.0.1:") != std::string::npos);
  CHECK(json["votes"].dump().find("refused") != std::string::npos);

  std::thread([] {
    CHECK(redlock_last_error() == std::string());
    CHECK(redlock_last_error_json() == std::string());
  }).join();
  CHECK(try_in_c(client, "c-free") == REDLOCK_OK);
  CHECK(redlock_last_error() == sentence);
}

TEST_CASE("C: an error's texts are JSON whatever bytes they have") {
  struct Text {
    std::string given;
    std::string read;
  };
  const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
  const std::vector<Text> texts = {
      {"quote\" backslash\\", "quote\" backslash\\"},
      {"tab\t escape\x1b delete\x7f", "tab\t escape\x1b delete\x7f"},
      {"r\xC3\xA4tsel \xE2\x82\xAC \xF0\x9F\x94\x92",
       "r\xC3\xA4tsel \xE2\x82\xAC \xF0\x9F\x94\x92"},
      {"\xC3 \xE2\x82 \xF0\x9F\x94 ", bad + " " + bad + bad + " " + bad + bad + bad + " "},
      {"\xE2\x82", bad + bad},
      {"\xC0\xAF", bad + bad},
      {"\xE0\x80\xAF", bad + bad + bad},
      {"\xF0\x80\x80\xAF", bad + bad + bad + bad},
      {"\xED\xA0\x80", bad + bad + bad},
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},
      {"\x80\xFF", bad + bad}};
  for (const Text& text : texts) {
    CAPTURE(text.given);
    const Error error{Errc::no_quorum,
                      text.given,
                      {{text.given, Vote::unavailable, Cause::tls, text.given},
                       {"second", Vote::granted, Cause::none, ""}}};
    const auto json = nlohmann::json::parse(c::to_json(error));
    CHECK(json["message"] == text.read);
    REQUIRE(json["votes"].size() == 2);
    CHECK(json["votes"][0]["node"] == text.read);
    CHECK(json["votes"][0]["detail"] == text.read);
    CHECK(json["votes"][0]["cause"] == "tls");
    CHECK(json["votes"][1]["vote"] == "granted");
  }
  const Error unseen{Errc::lost, "a\xE2\x80\xAE\xF3\xA0\x81\x81\xC2\x9B", {}};
  CHECK(c::to_json(unseen).find("\"a\\u202e\\udb40\\udc41\\u009b\"") != std::string::npos);
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
  redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
  options.nodes = nodes.c_str();
  options.node_timeout_ms = 10'000;
  options.connect_timeout_ms = 10'000;
  options.without_quarantine = 1;
  options.client_name = "c-client-name";
  options.label = "c-label";
  options.lease_ms = 20'000;
  redlock_client* made = nullptr;
  REQUIRE_MESSAGE(redlock_client_create(&options, &made) == REDLOCK_OK, redlock_last_error());
  const OwnedClient client(made);
  {
    const auto lease = lease_in_c(client, "c-options");
    CHECK(redlock_lease_remaining_ms(lease.get()) < 20'000);
    REQUIRE(eventually([&] { return nodes_with_lock(three_nodes(), "c-options") == 3; }));
    const auto connections = three_nodes().run(0, {"CLIENT", "LIST"});
    CHECK(connections.find("name=c-client-name ") != std::string::npos);
    const auto holder = three_nodes().run(0, {"HGET", "redlock:lock:{c-options}", "@"});
    CHECK(holder.find("c-label") != std::string::npos);
  }
  redlock_acquire_options never = REDLOCK_ACQUIRE_OPTIONS_INIT;
  never.lease_ms = 5'000;
  never.min_validity_ms = 4'990;  // more than the drift allowance leaves
  CHECK(try_in_c(client, "c-min-validity", never) == REDLOCK_INVALID_ARGUMENT);
  CHECK(std::string(redlock_last_error()).find("min_validity") != std::string::npos);

  redlock_acquire_options held = REDLOCK_ACQUIRE_OPTIONS_INIT;
  held.lease_ms = 900;
  held.renewal = REDLOCK_RENEW_ALWAYS;
  held.max_hold_ms = 10;
  const auto lease = lease_in_c(client, "c-max-hold", held);
  CHECK(is_readable(redlock_lease_lost_fd(lease.get()), static_cast<int>(patience_ms)));
}

TEST_CASE("C: an option that is refused is named, so each is where it belongs") {
  const auto refused = [](const auto& set) {
    redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
    options.nodes = "127.0.0.1:1";
    set(options);
    redlock_client* none = nullptr;
    CHECK(redlock_client_create(&options, &none) == REDLOCK_INVALID_ARGUMENT);
    return std::string(redlock_last_error());
  };
  using Options = redlock_client_options;
  CHECK(refused([](Options& options) { options.tls_ca = "a"; }).starts_with("tls.ca "));
  CHECK(refused([](Options& options) { options.tls_name = "a"; }).starts_with("tls.name "));
  CHECK(refused([](Options& options) {
          options.tls_certificate = "a";
        }).starts_with("tls.certificate "));
  CHECK(refused([](Options& options) { options.tls_key = "a"; }).starts_with("tls.key "));
  CHECK(refused([](Options& options) { options.lease_ms = -1; }).starts_with("lease "));
  CHECK(refused([](Options& options) { options.max_lease_ms = -1; }).starts_with("max_lease "));
  CHECK(
      refused([](Options& options) { options.node_timeout_ms = -1; }).starts_with("node_timeout "));
  CHECK(refused([](Options& options) {
          options.connect_timeout_ms = -1;
        }).starts_with("connect_timeout "));
}

TEST_CASE("C: the password of a file is that of every node") {
  const Fleet fleet({.nodes = 3, .password = "c-secret"});
  const TemporaryDirectory directory;
  const auto file = (directory.path() / "password").string();
  std::ofstream(file) << "c-secret\n";
  std::string nodes;
  for (std::size_t node = 0; node < 3; ++node) {
    nodes += "127.0.0.1:" + std::to_string(fleet.port(node)) + " ";
  }
  redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
  options.nodes = nodes.c_str();
  options.password_file = file.c_str();
  options.node_timeout_ms = 10'000;
  options.without_quarantine = 1;
  redlock_client* made = nullptr;
  REQUIRE_MESSAGE(redlock_client_create(&options, &made) == REDLOCK_OK, redlock_last_error());
  const OwnedClient client(made);
  CHECK(redlock_lease_valid(lease_in_c(client, "c-password").get()) == 1);
  std::ofstream(file) << "\n";
  CHECK(redlock_client_create(&options, &made) == REDLOCK_INVALID_ARGUMENT);
  CHECK(std::string(redlock_last_error()).starts_with("password_file: its first line"));
}

TEST_CASE("C: options of another version are told apart by their size") {
  struct Later {
    redlock_acquire_options known;
    std::int64_t added;
  };
  const auto client = client_in_c(three_nodes());
  redlock_acquire_options options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.size = 0;
  CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);
  CHECK(std::string(redlock_last_error()).find("REDLOCK_ACQUIRE_OPTIONS_INIT") !=
        std::string::npos);
  Later later{REDLOCK_ACQUIRE_OPTIONS_INIT, 0};
  later.known.size = sizeof later;
  CHECK(try_in_c(client, "c-size", later.known) == REDLOCK_OK);
  later.added = 1;
  CHECK(try_in_c(client, "c-size", later.known) == REDLOCK_INVALID_ARGUMENT);
  // What an option that was never set has of the memory before is no reason to read so far.
  options.size = std::numeric_limits<std::size_t>::max() / 2;
  CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);

  options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.ordering = static_cast<redlock_ordering>(3);
  CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);
  options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.renewal = static_cast<redlock_renewal>(3);
  CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);
  options = REDLOCK_ACQUIRE_OPTIONS_INIT;
  options.lease_ms = -5;
  CHECK(try_in_c(client, "c-size", options) == REDLOCK_INVALID_ARGUMENT);
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
  redlock_client* made = nullptr;
  REQUIRE_MESSAGE(
      redlock_client_create(reinterpret_cast<const redlock_client_options*>(of_client.get()),
                            &made) == REDLOCK_OK,
      redlock_last_error());
  CHECK(OwnedClient(made) != nullptr);

  const auto client = client_in_c(three_nodes());
  const auto of_call = std::make_unique<EarlierAcquireOptions>(EarlierAcquireOptions{
      sizeof(EarlierAcquireOptions), 20'000, REDLOCK_RENEW_NEVER, patience_ms});
  redlock_lease* taken = nullptr;
  REQUIRE_MESSAGE(redlock_acquire(client.get(), "c-older",
                                  reinterpret_cast<const redlock_acquire_options*>(of_call.get()),
                                  &taken) == REDLOCK_OK,
                  redlock_last_error());
  const OwnedLease lease(taken);
  CHECK(redlock_lease_remaining_ms(lease.get()) <= 20'000);
  // One that has not even a lease is the default, like NULL.
  auto none = std::make_unique<size_t>(sizeof(size_t));
  taken = nullptr;
  CHECK(redlock_acquire(client.get(), "c-oldest",
                        reinterpret_cast<const redlock_acquire_options*>(none.get()),
                        &taken) == REDLOCK_OK);
  CHECK(redlock_lease_remaining_ms(OwnedLease(taken).get()) > 20'000);
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

TEST_CASE("C: the descriptor of a lease is readable once it is lost, and not before") {
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
}

TEST_CASE("C: a lease that is given back is not lost") {
  const auto client = client_in_c(three_nodes());
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
  redlock_client* made = nullptr;
  REQUIRE_MESSAGE(redlock_client_create(nullptr, &made) == REDLOCK_OK, redlock_last_error());
  const OwnedClient client(made);
  CHECK(lease_in_c(client, "c-environment") != nullptr);
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
