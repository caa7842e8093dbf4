// SPDX-License-Identifier: MIT
// Host names of this program, in place of those that the system knows: all lead to one address,
// which can be changed.
#include <arpa/inet.h>
#include <cstdint>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>

#include "soak/soak.hpp"

namespace {

std::mutex names_mutex;
std::string names_lead_to;
std::size_t names_looked_up = 0;

}  // namespace

void redlock::soak::set_address(const std::string& address) {
  const std::scoped_lock lock(names_mutex);
  names_lead_to = address;
}

std::size_t redlock::soak::look_ups() {
  const std::scoped_lock lock(names_mutex);
  return names_looked_up;
}

// Visible, so that libuv finds these before the C library's.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* host, const char* service,
                                                          const addrinfo* hints,
                                                          addrinfo** result) {
  const std::scoped_lock lock(names_mutex);
  ++names_looked_up;
  auto* const where = new sockaddr_in{};
  where->sin_family = AF_INET;
  where->sin_port = htons(static_cast<std::uint16_t>(std::stoi(service)));
  if (inet_pton(AF_INET, host, &where->sin_addr) != 1) {
    inet_pton(AF_INET, names_lead_to.c_str(), &where->sin_addr);
  }
  *result = new addrinfo{};
  (*result)->ai_family = AF_INET;
  (*result)->ai_socktype = hints->ai_socktype;
  (*result)->ai_addr = reinterpret_cast<sockaddr*>(where);
  (*result)->ai_addrlen = sizeof *where;
  return 0;
}

extern "C" [[gnu::visibility("default")]] void freeaddrinfo(addrinfo* list) {
  if (list == nullptr) return;
  delete reinterpret_cast<sockaddr_in*>(list->ai_addr);
  delete list;
}
