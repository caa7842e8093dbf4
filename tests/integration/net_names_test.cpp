// SPDX-License-Identifier: MIT
// Host names, with the C library's look-up replaced by one that knows what a test tells it, and
// that hangs for as long as a test wants.
#include <arpa/inet.h>
#include <cstdint>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "integration/api_program_loop.hpp"
#include "net_core_fixture.hpp"
#include "net_link_fixture.hpp"

using namespace redlock::net;

namespace {

class NameServer {
 public:
  using Address = std::pair<std::string, std::uint16_t>;
  using Addresses = std::vector<Address>;

  /// A port of 0 stands for the one that is asked for.
  void set(const std::string& name, Addresses addresses) {
    const std::scoped_lock lock(mutex_);
    names_[name] = std::move(addresses);
  }
  /// Look-ups of that name do not return before answer().
  void hang(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    hanging_.insert(name);
  }
  void fail(bool fails) {
    const std::scoped_lock lock(mutex_);
    fails_ = fails;
  }
  [[nodiscard]] bool fails() {
    const std::scoped_lock lock(mutex_);
    return fails_;
  }
  void answer() {
    const std::scoped_lock lock(mutex_);
    hanging_.clear();
    changed_.notify_all();
  }
  Addresses look_up(const std::string& name) {
    std::unique_lock lock(mutex_);
    ++look_ups_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !hanging_.contains(name); });
    return names_.contains(name) ? names_.at(name) : Addresses();
  }
  [[nodiscard]] int look_ups() {
    const std::scoped_lock lock(mutex_);
    return look_ups_;
  }
  void await_look_ups(int count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return look_ups_ >= count; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Addresses> names_;
  std::set<std::string> hanging_;
  int look_ups_ = 0;
  bool fails_ = false;
};

NameServer& name_server() {
  static auto& server = *new NameServer;  // look-ups may go on when the program ends
  return server;
}

/// Ends with a name server that answers, whatever became of the test.
struct HangingName {
  explicit HangingName(const std::string& name) { name_server().hang(name); }
  ~HangingName() { name_server().answer(); }
  HangingName(const HangingName&) = delete;
  HangingName& operator=(const HangingName&) = delete;
};

}  // namespace

// Visible, so that shared libraries find these before the C library's.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* host, const char* service,
                                                          const addrinfo* hints,
                                                          addrinfo** result) {
  const auto addresses = name_server().look_up(host);
  if (name_server().fails()) return EAI_AGAIN;
  if (addresses.empty()) return EAI_NONAME;
  *result = nullptr;
  for (auto address = addresses.rbegin(); address != addresses.rend(); ++address) {
    auto* entry = new addrinfo{};
    auto* where = new sockaddr_in{};
    const auto port = static_cast<std::uint16_t>(std::stoi(service));
    where->sin_family = AF_INET;
    where->sin_port = htons(address->second == 0 ? port : address->second);
    inet_pton(AF_INET, address->first.c_str(), &where->sin_addr);
    entry->ai_family = AF_INET;
    entry->ai_socktype = hints->ai_socktype;
    entry->ai_addr = reinterpret_cast<sockaddr*>(where);
    entry->ai_addrlen = sizeof *where;
    entry->ai_next = *result;
    *result = entry;
  }
  return 0;
}

extern "C" [[gnu::visibility("default")]] void freeaddrinfo(addrinfo* list) {
  while (list != nullptr) {
    addrinfo* const next = list->ai_next;
    delete reinterpret_cast<sockaddr_in*>(list->ai_addr);
    delete list;
    list = next;
  }
}

TEST_CASE("of several addresses one that answers is found, and used while a look-up hangs") {
  Fleet fleet({.nodes = 1});
  // The first of the two is one where nobody listens.
  name_server().set("node.example", {{"127.0.0.77", 0}, {"127.0.0.1", 0}});
  LinkFixture link("redis://node.example:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  const HangingName hanging("node.example");
  fleet.run(0, {"CLIENT", "KILL", "TYPE", "normal"});
  link.run_until_up();
}

TEST_CASE("a name that moved is followed when a slow look-up says where to") {
  StubServer before(healthy);
  StubServer after(healthy);
  name_server().set("node.example", {{"127.0.0.1", before.port()}});
  LinkFixture link("redis://node.example");
  link.run_until_up();
  {
    const HangingName hanging("node.example");
    name_server().set("node.example", {{"127.0.0.1", after.port()}});
    before.reset_all();
    link.run_until_up();
    CHECK(before.accepted() == 2);
    CHECK(after.accepted() == 0);
  }
  link.run_until_up();
  CHECK(after.accepted() == 1);
  CHECK(contains(link.downs.back().detail, "its name leads to another address now"));
}

TEST_CASE("a slow look-up that finds the same address changes nothing") {
  StubServer node(healthy);
  name_server().set("node.example", {{"127.0.0.1", node.port()}});
  LinkFixture link("redis://node.example");
  link.run_until_up();
  const int so_far = name_server().look_ups();
  {
    const HangingName hanging("node.example");
    node.reset_all();
    link.run_until_up();
    name_server().await_look_ups(so_far + 1);
  }
  // Its answer has come when another look-up is made, which joins none.
  node.reset_all();
  link.run_until_up();
  CHECK(node.accepted() == 3);
}

TEST_CASE("clients that end beside look-ups that hang leave no descriptor open") {
  const HangingName hanging("hangs.example");
  Running({"redis://hangs.example"});  // what the process has for ever is made now
  const auto before = open_descriptors();
  const int look_ups = name_server().look_ups();
  constexpr int clients = 20;
  for (int i = 1; i <= clients; ++i) {
    Running client({"redis://hangs.example"});
    name_server().await_look_ups(look_ups + i);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a name that does not exist is a failure to connect") {
  Running client({"redis://unknown.example"});
  const auto why = client.sink.await_down(0);
  CHECK(why.cause == redlock::Cause::connection_failed);
  CHECK(contains(why.detail, "cannot resolve its name"));
}

TEST_CASE("look-ups that hang hold up neither other nodes nor the stop, on a given loop neither") {
  Fleet fleet({.nodes = 3});
  name_server().set("good.example", {{"127.0.0.1", 0}});
  const HangingName one("one.example");
  const HangingName two("two.example");
  std::vector<std::string> uris{"redis://one.example", "redis://two.example"};
  for (std::size_t node = 0; node < 3; ++node) {
    uris.push_back("redis://good.example:" + std::to_string(fleet.port(node)));
  }
  Running client(uris);
  CHECK(granted(client.acquire(1, "n")).token > 0);
  for (const engine::NodeIndex node : {0U, 1U}) {
    CHECK(contains(client.sink.await_down(node).detail, "cannot resolve its name within 2000 ms"));
  }
  // A look-up that hangs is not joined by others.
  const int so_far = name_server().look_ups();
  client.ask(0, {"PING"}).get();
  CHECK(name_server().look_ups() == so_far);
  ProgramLoop loop;
  Recorder host;
  std::unique_ptr<Core> core = std::move(*Core::start(Running::config_for(uris), host, loop.uv));
  CHECK(loop.runs_until([&] { return host.is_up(2) && host.is_up(3) && host.is_up(4); }));
  core->end([&] { core.reset(); });
  CHECK(loop.runs_until([&] { return core == nullptr; }));
}

TEST_CASE(
    "a client on a given loop ends beside a look-up that hangs, and a turn of the loop later") {
  Fleet fleet({.nodes = 1});
  const std::string uri = "redis://given.example:" + std::to_string(fleet.port(0));
  name_server().set("given.example", {{"127.0.0.1", 0}});
  ProgramLoop loop;
  for (const bool hangs : {false, true, true}) {
    CAPTURE(hangs);
    Recorder host;
    std::optional<HangingName> hanging;
    if (hangs) hanging.emplace("given.example");
    const int look_ups = name_server().look_ups();
    std::unique_ptr<Core> core = std::move(*Core::start(Running::config_for({uri}), host, loop.uv));
    if (hangs) {
      uv_run(&loop.uv, UV_RUN_NOWAIT);
      name_server().await_look_ups(look_ups + 1);
    } else {
      CHECK(loop.runs_until([&] { return host.is_up(0); }));
    }
    core->end([&] { core.reset(); });
    CHECK(loop.runs_until([&] { return core == nullptr; }));
    // Nothing of it is left on the loop, which would not end else.
    CHECK(uv_run(&loop.uv, UV_RUN_DEFAULT) == 0);
    hanging.reset();
    CHECK(uv_run(&loop.uv, UV_RUN_DEFAULT) == 0);
    CHECK(host.is_up(0) != hangs);
  }
}

TEST_CASE("the child of a fork leaves its copy of the loop beside a look-up that hangs") {
  const HangingName hanging("hangs.example");
  ProgramLoop loop;
  Recorder host;
  CoreConfig config = Running::config_for({"redis://hangs.example"});
  const pid_t parent = ::getpid();
  config.in_child = [parent] { return ::getpid() != parent; };
  const int look_ups = name_server().look_ups();
  std::unique_ptr<Core> core = std::move(*Core::start(std::move(config), host, loop.uv));
  uv_run(&loop.uv, UV_RUN_NOWAIT);
  name_server().await_look_ups(look_ups + 1);
  CHECK(exit_code_of_child([&] {
          const bool left = uv_loop_fork(&loop.uv) == 0 && uv_run(&loop.uv, UV_RUN_DEFAULT) == 0;
          return left ? 0 : 1;
        }) == 0);
  core->end([&] { core.reset(); });
  CHECK(loop.runs_until([&] { return core == nullptr; }));
}

TEST_CASE("a look-up that fails leaves the addresses that were found last") {
  Fleet fleet({.nodes = 1});
  name_server().set("node.example", {{"127.0.0.1", 0}});
  LinkFixture link("redis://node.example:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  name_server().fail(true);
  fleet.run(0, {"CLIENT", "KILL", "TYPE", "normal"});
  link.run_until_up();
  name_server().fail(false);
}

TEST_CASE("a name that is gone loses the addresses that were found last") {
  Fleet fleet({.nodes = 1});
  name_server().set("node.example", {{"127.0.0.1", 0}});
  LinkFixture link("redis://node.example:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  name_server().set("node.example", {});
  fleet.run(0, {"CLIENT", "KILL", "TYPE", "normal"});
  link.run_until_down();
  link.run_until_down();
  CHECK(contains(link.downs.back().detail, "cannot resolve its name"));
}

TEST_CASE("an address that swallows packets leaves time for the next") {
  Fleet fleet({.nodes = 1});
  const int deaf = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(fleet.port(0));
  inet_pton(AF_INET, "127.0.0.77", &where.sin_addr);
  const auto* const address = reinterpret_cast<const sockaddr*>(&where);
  REQUIRE(::bind(deaf, address, sizeof where) == 0);
  REQUIRE(::listen(deaf, 0) == 0);
  std::vector<int> callers;  // they fill its queue
  for (int i = 0; i < 4; ++i) {
    callers.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    static_cast<void>(::connect(callers.back(), address, sizeof where));
  }
  name_server().set("node.example", {{"127.0.0.77", 0}, {"127.0.0.1", 0}});
  LinkFixture link("redis://node.example:" + std::to_string(fleet.port(0)));
  link.run_until_up();
  for (const int caller : callers) ::close(caller);
  ::close(deaf);
}
