// SPDX-License-Identifier: MIT
// Host names, with the C library's look-up replaced by one that can hang and that knows a name with
// two addresses.
#include <arpa/inet.h>
#include <atomic>
#include <doctest/doctest.h>
#include <netdb.h>
#include <string>

#include "cluster/fleet.hpp"
#include "io_core_fixture.hpp"

using namespace redlock::io;
using redlock::cluster::Fleet;

namespace {

std::atomic<bool> name_server_hangs = true;
std::atomic<int> look_ups = 0;

}  // namespace

// Visible, so that libuv finds these before the C library's.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* host, const char* service,
                                                          const addrinfo* hints,
                                                          addrinfo** result) {
  ++look_ups;
  const std::string name = host;
  if (name == "hangs.example") {
    name_server_hangs.wait(true);
    return EAI_AGAIN;
  }
  if (name != "two.example") return EAI_NONAME;
  // The first of the two is one where nobody listens.
  *result = nullptr;
  for (const char* address : {"127.0.0.1", "127.0.0.77"}) {
    auto* entry = new addrinfo{};
    auto* where = new sockaddr_in{};
    where->sin_family = AF_INET;
    where->sin_port = htons(static_cast<std::uint16_t>(std::stoi(service)));
    inet_pton(AF_INET, address, &where->sin_addr);
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

TEST_CASE("a name server that hangs delays neither the other nodes nor the stop") {
  Fleet fleet({.nodes = 2});
  {
    Running client({"redis://hangs.example", fleet.uri(0), fleet.uri(1)});
    CHECK(granted(client.acquire(1, "n")).token > 0);
    CHECK(contains(client.sink.await_down(0).detail, "cannot resolve its name within 2000 ms"));
    // The look-up that hangs is not joined by others.
    const int so_far = look_ups;
    client.ask(0, {"PING"}).get();
    CHECK(look_ups == so_far);
  }
  name_server_hangs = false;
  name_server_hangs.notify_all();
}

TEST_CASE("all addresses of a name are tried in turn") {
  Fleet fleet({.nodes = 1});
  Running client({"redis://two.example:" + std::to_string(fleet.port(0))});
  client.sink.await_up(0);
}

TEST_CASE("a name that does not exist is a failure to connect") {
  Running client({"redis://unknown.example"});
  const auto why = client.sink.await_down(0);
  CHECK(why.cause == redlock::Cause::connection_failed);
  CHECK(contains(why.detail, "cannot resolve its name"));
}
