// SPDX-License-Identifier: MIT
#include "net/resolver.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#include "net/signals.hpp"

namespace redlock::net {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};

Resolution look_up_now(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  Resolution resolution;
  if (status == EAI_SYSTEM) {
    resolution.problem = std::system_category().message(errno);
  } else if (status != 0) {
    resolution.problem = ::gai_strerror(status);
    resolution.unknown_name = status == EAI_NONAME || status == EAI_NODATA;
  }
  if (status != 0) return resolution;
  const std::unique_ptr<addrinfo, FreeAddresses> owned(found);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    std::memcpy(&resolution.addresses.emplace_back(), entry->ai_addr, entry->ai_addrlen);
  }
  if (resolution.addresses.empty()) resolution.problem = "it has no address";
  return resolution;
}

Resolution look_up_in_any_case(const std::string& host, const std::string& port) noexcept {
  Resolution failed;
  failed.problem.assign("out of memory");  // which a string holds in itself
  try {
    return look_up_now(host, port);
  } catch (const std::exception&) {
    return failed;
  }
}

}  // namespace

/// The loop's part of a look-up; libuv uses it until a turn after it is closed.
struct Resolver::Waker {
  uv_async_t uv{};
  Loop& loop;
  Resolver* resolver;  // null: given up
};

/// Shared by the resolver and the thread, which may outlive the rest of the client.
struct Resolver::LookUp {
  std::mutex mutex;
  uv_async_t* waker = nullptr;  // null: given up
  Resolution resolution;
};

bool Resolver::resolve(const std::string& host, std::uint16_t port) {
  if (look_up_) return true;
  auto waker = std::unique_ptr<Waker>(new Waker{.loop = loop_, .resolver = this});
  auto begun = std::make_shared<LookUp>();
  waker->uv.data = waker.get();
  const int status = uv_async_init(&loop_.uv, &waker->uv, [](uv_async_t* handle) {
    // Called once more if the look-up was given up meanwhile: the handle is then being closed.
    auto* const resolver = static_cast<Waker*>(handle->data)->resolver;
    if (resolver != nullptr) resolver->loop_.run([=] { resolver->finished(); });
  });
  if (status != 0) return false;
  loop_.enter();
  waker_ = waker.release();
  look_up_ = std::move(begun);
  look_up_->waker = &waker_->uv;
  try {
    const AllSignalsBlocked blocked;  // and in threads that are started now: a caller may drive the
                                      // loop
    std::thread([look_up = look_up_, host, service = std::to_string(port)] {
      pthread_setname_np(pthread_self(), "redlock-name");
      Resolution resolution = look_up_in_any_case(host, service);
      const std::scoped_lock lock(look_up->mutex);
      if (look_up->waker == nullptr) return;
      look_up->resolution = std::move(resolution);
      uv_async_send(look_up->waker);
    }).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    abandon();
    return false;
  }
  return true;
}

void Resolver::finished() {
  const auto look_up = look_up_;
  give_up();
  resolved_(std::move(look_up->resolution));
}

void Resolver::give_up() {
  if (!look_up_) return;
  {
    // Not before the thread has left uv_async_send().
    const std::scoped_lock lock(look_up_->mutex);
    look_up_->waker = nullptr;
  }
  abandon();
}

void Resolver::abandon() {
  if (!look_up_) return;
  look_up_.reset();
  Waker* const waker = std::exchange(waker_, nullptr);
  waker->resolver = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&waker->uv), destroy_closed<Waker>);
}

}  // namespace redlock::net
