// SPDX-License-Identifier: MIT
#include "net/resolver.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <netdb.h>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#include "net/signals.hpp"

namespace redlock::net {
namespace {

addrinfo hints_for_streams() {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  return hints;
}

void take_addresses(const addrinfo* found, Resolution& resolution) {
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    std::memcpy(&resolution.addresses.emplace_back(), entry->ai_addr, entry->ai_addrlen);
  }
  if (resolution.addresses.empty()) resolution.problem = "it has no address";
}

struct FreeAddresses {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};

Resolution look_up_now(const std::string& host, const std::string& port) {
  const addrinfo hints = hints_for_streams();
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
  take_addresses(found, resolution);
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

/// Shared by the resolver and the thread, which may outlive everything else of the client.
struct Resolver::LookUp {
  std::mutex mutex;
  uv_async_t* waker = nullptr;  // null: given up
  Resolution resolution;
};

/// Of libuv until its callback, which frees it; a resolver that goes before is forgotten.
struct Resolver::PooledLookUp {
  explicit PooledLookUp(Resolver& of) : loop(of.loop_), resolver(&of) {}

  void answer(int uv_status, const addrinfo* found) const {
    resolver->pooled_ = nullptr;
    Resolution resolution;
    if (uv_status == 0) {
      take_addresses(found, resolution);
    } else {
      resolution.problem = uv_strerror(uv_status);
      resolution.unknown_name = uv_status == UV_EAI_NONAME || uv_status == UV_EAI_NODATA;
    }
    resolver->resolved_(std::move(resolution));
  }

  Loop& loop;
  uv_getaddrinfo_t uv{};
  Resolver* resolver;
};

bool Resolver::resolve(const std::string& host, std::uint16_t port) {
  if (under_way()) return true;
  return loop_.whose == Loop::Whose::given ? ask_pool(host, port) : start_thread(host, port);
}

bool Resolver::ask_pool(const std::string& host, std::uint16_t port) {
  auto look_up = std::make_unique<PooledLookUp>(*this);
  look_up->uv.data = look_up.get();
  const addrinfo hints = hints_for_streams();
  const int status = uv_getaddrinfo(
      &loop_.uv, &look_up->uv,
      [](uv_getaddrinfo_t* request, int uv_status, addrinfo* found) {
        std::unique_ptr<PooledLookUp> ended(static_cast<PooledLookUp*>(request->data));
        if (ended->resolver != nullptr) ended->loop.run([&] { ended->answer(uv_status, found); });
        uv_freeaddrinfo(found);
        Loop& loop = ended->loop;
        ended.reset();
        loop.leave();
      },
      host.c_str(), std::to_string(port).c_str(), &hints);
  if (status != 0) return false;
  pooled_ = look_up.release();
  loop_.enter();
  return true;
}

bool Resolver::start_thread(const std::string& host, std::uint16_t port) {
  auto waker = std::make_unique<uv_async_t>();
  auto begun = std::make_shared<LookUp>();
  waker->data = this;
  const int status = uv_async_init(&loop_.uv, waker.get(), [](uv_async_t* handle) {
    // Called once more if the look-up was given up meanwhile: the handle is then being closed.
    auto* const resolver = static_cast<Resolver*>(handle->data);
    if (resolver != nullptr) resolver->loop_.run([=] { resolver->finished(); });
  });
  if (status != 0) return false;
  waker_ = waker.release();
  look_up_ = std::move(begun);
  look_up_->waker = waker_;
  try {
    const AllSignalsBlocked blocked;  // and in what is started now: a caller may drive the loop
    std::thread([look_up = look_up_, host, service = std::to_string(port)] {
      pthread_setname_np(pthread_self(), "redlock-name");
      Resolution resolution = look_up_in_any_case(host, service);
      const std::scoped_lock lock(look_up->mutex);
      if (look_up->waker == nullptr) return;
      look_up->resolution = std::move(resolution);
      uv_async_send(look_up->waker);
    }).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    look_up_.reset();
    close_waker();
    return false;
  }
  return true;
}

void Resolver::finished() {
  const auto look_up = std::exchange(look_up_, nullptr);
  {
    // Not before the thread has left uv_async_send().
    const std::scoped_lock lock(look_up->mutex);
    look_up->waker = nullptr;
  }
  close_waker();
  resolved_(std::move(look_up->resolution));
}

void Resolver::close_waker() {
  waker_->data = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(std::exchange(waker_, nullptr)), [](uv_handle_t* handle) {
    const std::unique_ptr<uv_async_t> closed(reinterpret_cast<uv_async_t*>(handle));
  });
}

Resolver::~Resolver() {
  if (pooled_ != nullptr) {
    pooled_->resolver = nullptr;
    static_cast<void>(uv_cancel(reinterpret_cast<uv_req_t*>(&pooled_->uv)));  // if it waits
  }
  if (!look_up_) return;
  {
    const std::scoped_lock lock(look_up_->mutex);
    look_up_->waker = nullptr;
  }
  close_waker();
}

}  // namespace redlock::net
