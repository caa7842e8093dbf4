// SPDX-License-Identifier: MIT
// The request is shared: by the resolver, and by libuv until the look-up returns.
#include "io/resolver.hpp"

#include <cstring>
#include <utility>

namespace redlock::io {

struct Resolver::LookUp {
  uv_getaddrinfo_t request{};
  Resolved resolved;             // empty: nobody waits
  std::shared_ptr<LookUp> self;  // while libuv has the request
};

void Resolver::resolve(const std::string& host, std::uint16_t port, Resolved resolved) {
  if (look_up_ && look_up_->self) {
    look_up_->resolved = std::move(resolved);
    return;
  }
  look_up_ = std::make_shared<LookUp>();
  look_up_->resolved = std::move(resolved);
  look_up_->request.data = look_up_.get();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  look_up_->self = look_up_;
  const int status = uv_getaddrinfo(&loop_.uv, &look_up_->request, finished, host.c_str(),
                                    std::to_string(port).c_str(), &hints);
  if (status != 0) finished(&look_up_->request, status, nullptr);
}

void Resolver::cancel() {
  if (!look_up_) return;
  look_up_->resolved = nullptr;
  // Succeeds if no thread has begun with it yet.
  if (look_up_->self) uv_cancel(reinterpret_cast<uv_req_t*>(&look_up_->request));
}

void Resolver::finished(uv_getaddrinfo_t* request, int uv_status, addrinfo* result) {
  const auto look_up = std::move(static_cast<LookUp*>(request->data)->self);
  std::vector<sockaddr_storage> addresses;
  for (const addrinfo* entry = result; entry != nullptr; entry = entry->ai_next) {
    std::memcpy(&addresses.emplace_back(), entry->ai_addr, entry->ai_addrlen);
  }
  uv_freeaddrinfo(result);
  if (look_up->resolved) {
    std::exchange(look_up->resolved, nullptr)(std::move(addresses), uv_status);
  }
}

}  // namespace redlock::io
