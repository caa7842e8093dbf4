// SPDX-License-Identifier: MIT
// A client on a loop of the program's own.
#pragma once

#include <uv.h>

#include "integration/api_fixture.hpp"

namespace redlock::testing {

/// The loop of a program, which has a timer of its own there. Its end requires that libuv has
/// nothing left.
class ProgramLoop {
 public:
  ProgramLoop() {
    REQUIRE(uv_loop_init(&uv) == 0);
    uv_timer_init(&uv, &ticker_);
    ticker_.data = this;
  }
  ~ProgramLoop() {
    uv_close(reinterpret_cast<uv_handle_t*>(&ticker_), nullptr);
    CHECK(uv_run(&uv, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&uv) == 0);
  }
  ProgramLoop(const ProgramLoop&) = delete;
  ProgramLoop& operator=(const ProgramLoop&) = delete;

  /// With a tick in every few milliseconds, upon which it looks.
  bool runs_until(const std::function<bool()>& done) {
    uv_update_time(&uv);
    uv_timer_start(
        &ticker_, [](uv_timer_t* timer) { ++static_cast<ProgramLoop*>(timer->data)->ticks; }, 5, 5);
    const auto limit = BootClock::now() + patience;
    bool is_so = done();
    for (; !is_so && BootClock::now() < limit; is_so = done()) uv_run(&uv, UV_RUN_ONCE);
    uv_timer_stop(&ticker_);
    return is_so;
  }

  /// What the operation's callback is given, which must be called here.
  template <typename T>
  Result<T> result_of(Operation<T> operation) {
    const auto result = std::make_shared<std::optional<Result<T>>>();
    std::move(operation).start([result, here = std::this_thread::get_id()](Result<T> given) {
      CHECK(std::this_thread::get_id() == here);
      result->emplace(std::move(given));
    });
    REQUIRE(runs_until([&] { return result->has_value(); }));
    return std::move(**result);
  }

  uv_loop_t uv{};
  int ticks = 0;

 private:
  uv_timer_t ticker_{};
};

inline Client start_on(ProgramLoop& loop, ClientOptions options) {
  auto client = Client::create(std::move(options), &loop.uv);
  REQUIRE_MESSAGE(client.has_value(), client.error().message);
  return std::move(*client);
}

inline Client start_on(ProgramLoop& loop) {
  return start_on(loop, options_for(three_nodes().uris()));
}

struct ClientOnLoop {
  ProgramLoop loop;
  Client client = start_on(loop);
};

}  // namespace redlock::testing
