// SPDX-License-Identifier: MIT
// What a program that listens to nothing gets on stderr, and what it does not wait for. Each
// program here is a child of the test: a process has one stderr, and one such line in ten seconds.
#include <fcntl.h>

#include <redlock/redlock.h>

#include "integration/api_fixture.hpp"

namespace redlock::testing {
namespace {

struct Pipe {
  Pipe() { REQUIRE(::pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  /// Until nothing more fits.
  void fill() const {
    const int flags = ::fcntl(ends[1], F_GETFL);
    ::fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
    while (::write(ends[1], "x", 1) == 1) {
    }
    ::fcntl(ends[1], F_SETFL, flags);
  }

  int ends[2] = {-1, -1};
};

/// Runs `program` in a child with this pipe as its stderr; whether it came to its end.
bool ends_well(const Pipe& pipe, const std::function<void()>& program) {
  return exit_code_of_child([&] {
           ::dup2(pipe.ends[1], STDERR_FILENO);
           ::close(pipe.ends[0]);
           program();
           return 7;
         }) == 7;
}

/// What a program that came to its end has written to stderr.
std::string stderr_of(const std::function<void()>& program) {
  Pipe pipe;
  CHECK(ends_well(pipe, program));
  pipe.close(1);
  std::string text;
  char byte = 0;
  while (::read(pipe.ends[0], &byte, 1) == 1) text += byte;
  return text;
}

/// In a child, where doctest cannot fail.
void demand(bool what, const char* sentence) {
  if (what) return;
  std::fprintf(stderr, "child: %s\n", sentence);
  ::_exit(1);
}

Client client_for(const ClientOptions& options = options_for(three_nodes().uris())) {
  auto client = Client::create(options);
  demand(client.has_value(), "no client");
  return std::move(*client);
}

Lease short_lease(const Client& client, const std::string& name) {
  auto lease = client.lock(name).acquire({.lease = 500ms, .wait = patience});
  demand(lease.has_value(), "no lease");
  return std::move(*lease);
}

/// By when a lease of this name that was not given back is lost, and that was told.
void await_end(const Client& client, const std::string& name) {
  demand(client.lock(name).acquire({.wait = patience}).has_value(), "not free in the end");
}

/// A program that does not look at its lease.
void lose(const std::string& name) {
  const Client client = client_for();
  const Lease lease = short_lease(client, name);
  await_end(client, name);
}

TEST_CASE("a loss that nothing in the program listens for is told on stderr") {
  const auto text = stderr_of([] {
    const Client client = client_for();
    const Lease first = short_lease(client, "first\n");
    const Lease second = short_lease(client, "second");
    demand(first.token() > 0, "no token");
    await_end(client, "first\n");
    await_end(client, "second");
  });
  CHECK_MESSAGE(contains(text,
                         "redlock: the lease of 'first\\x0a' was lost (expired) and nothing in "
                         "the program listens for that: tie the work to lost(), or set "
                         "ClientOptions::observer\n"),
                text);
  CHECK_MESSAGE(!contains(text, "second"), text);  // the next line is due in ten seconds
}

TEST_CASE("a program that asks its lease, observes, or wants no warning gets none") {
  auto options = options_for(three_nodes().uris());
  const auto loses = [&](const std::function<void(Lease&)>& asks) {
    return stderr_of([&] {
      const Client client = client_for(options);
      Lease lease = short_lease(client, "quiet");
      asks(lease);
      await_end(client, "quiet");
    });
  };
  const auto asks_nothing = [](Lease&) {};
  CHECK(contains(loses(asks_nothing), "'quiet' was lost"));
  CHECK(loses([](Lease& lease) { (void)lease.lost(); }).empty());
  CHECK(loses([](Lease& lease) { (void)lease.loss_reason(); }).empty());
  CHECK(loses([](Lease& lease) { (void)lease.valid(); }).empty());
  CHECK(loses([](Lease& lease) { (void)lease.valid_until(); }).empty());
  CHECK(loses([](Lease& lease) { (void)lease.confirm(); }).empty());
  CHECK(loses([](Lease& lease) { (void)lease.async_extend(500ms); }).empty());
  options.warn_on_stderr = false;
  CHECK(loses(asks_nothing).empty());
  options.warn_on_stderr = true;
  options.observer = std::make_shared<Observer>();
  CHECK(loses(asks_nothing).empty());
}

TEST_CASE("a loss of what an owner holds is told, unless it asks the lock") {
  const auto loses = [](const std::function<void(RedLock&)>& asks) {
    return stderr_of([&] {
      const Client client = client_for();
      RedLock lock = client.lock("owned");
      lock.lock(500ms);
      asks(lock);
      await_end(client, "owned");
      lock.unlock();
    });
  };
  CHECK(contains(loses([](RedLock&) {}), "'owned' was lost"));
  CHECK(loses([](RedLock& lock) { (void)lock.held_by_me(); }).empty());
  CHECK(loses([](RedLock& lock) { (void)lock.lost(); }).empty());
}

TEST_CASE("what unlock() did not find is told on stderr") {
  const auto text = stderr_of([] {
    const Client client = client_for();
    RedLock lock = client.lock("unlocked");
    lock.lock();
    demand(lock.held_by_me(), "not held");
    run_on_all(three_nodes(), {"DEL", "redlock:lock:{unlocked}"});
    lock.unlock();
  });
  CHECK(text ==
        "redlock: unlock: 'unlocked' was no longer ours when it was unlocked: stop the work when "
        "lost() is requested\n");
}

TEST_CASE("the next line comes ten seconds later, and counts those that were left out") {
  const auto text = stderr_of([] {
    const Client client = client_for();
    for (int i = 0; i < 25; ++i) {
      const Lease lease = short_lease(client, "again");
      await_end(client, "again");
    }
  });
  CHECK_MESSAGE(contains(text, " more warnings before)\n"), text);
}

TEST_CASE("the child of a fork is told of its own losses, whatever its parent was told") {
  const auto text = stderr_of([] {
    for (const char* name : {"first", "left out"}) lose(name);
    const auto child = [] { return lose("its own"), 7; };
    demand(exit_code_of_child(child) == 7, "no child");
  });
  CHECK_MESSAGE(contains(text, "'its own' was lost"), text);
  CHECK_MESSAGE(!contains(text, "more warnings"), text);
}

TEST_CASE("no warning is waited with, and none ends the program") {
  const auto program = [] { lose("unread"); };
  Pipe full;
  full.fill();
  CHECK(ends_well(full, program));
  Pipe without_reader;
  without_reader.close(0);
  CHECK(ends_well(without_reader, program));
}

TEST_CASE("in C a loss is told, unless the lease is asked or warnings are off") {
  std::string nodes;
  for (const auto& uri : three_nodes().uris()) nodes += uri + " ";
  const auto loses = [&](bool without_warnings, bool asks) {
    return stderr_of([&] {
      redlock_client_options options = REDLOCK_CLIENT_OPTIONS_INIT;
      options.nodes = nodes.c_str();
      options.node_timeout_ms = 10'000;
      options.connect_timeout_ms = 10'000;
      options.without_quarantine = 1;
      options.without_warnings = without_warnings ? 1 : 0;
      redlock_client* client = nullptr;
      demand(redlock_client_create(&options, &client) == REDLOCK_OK, "no client");
      redlock_acquire_options acquire = REDLOCK_ACQUIRE_OPTIONS_INIT;
      acquire.wait_ms = std::chrono::milliseconds(patience).count();
      acquire.lease_ms = 500;
      for (int i = 0; i < 2; ++i) {
        redlock_lease* lease = nullptr;
        demand(redlock_acquire(client, "in C", &acquire, &lease) == REDLOCK_OK, "no lease");
        if (asks) demand(redlock_lease_lost_fd(lease) >= 0, "no descriptor");
      }
    });
  };
  CHECK(contains(loses(false, false), "'in C' was lost"));
  CHECK(loses(false, true).empty());
  CHECK(loses(true, false).empty());
}

}  // namespace
}  // namespace redlock::testing
