// SPDX-License-Identifier: MIT
// The std::future form, made of the callback form.
#pragma once

#include <future>
#include <memory>
#include <utility>

#include <redlock/operation.hpp>

namespace redlock::client {

template <typename T, typename Start>
std::future<Result<T>> as_future(Start start) {
  // Shared, because std::function must be able to copy what it holds.
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  start(Callback<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
  return future;
}

}  // namespace redlock::client
