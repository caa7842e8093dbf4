// SPDX-License-Identifier: MIT
// The library's operations as Asio's asynchronous operations: they take any completion token,
// continue on the handler's executor, and are cancelled by its cancellation slot.
//
//     redlock::Result<redlock::Lease> lease =
//         co_await redlock::async_acquire(lock, {.wait = 10s}, asio::use_awaitable);
//
// Header only. Asio itself (1.18 or newer) and Boost.Asio (Boost 1.74 or newer) both work. The
// header uses the library that was included before it, or else the one that is installed. Where
// neither decides, define REDLOCK_ASIO_STANDALONE or REDLOCK_ASIO_BOOST. A program may use this
// header with both, in files of their own.
#pragma once

#include <redlock/cpp20.hpp>

#if defined(REDLOCK_ASIO_STANDALONE) && defined(REDLOCK_ASIO_BOOST)
#error "redlock/asio.hpp: define REDLOCK_ASIO_STANDALONE or REDLOCK_ASIO_BOOST, not both"
#elif !defined(REDLOCK_ASIO_STANDALONE) && !defined(REDLOCK_ASIO_BOOST)
#if defined(ASIO_DETAIL_CONFIG_HPP) != defined(BOOST_ASIO_DETAIL_CONFIG_HPP)
#if defined(ASIO_DETAIL_CONFIG_HPP)
#define REDLOCK_ASIO_STANDALONE
#else
#define REDLOCK_ASIO_BOOST
#endif
#elif __has_include(<asio/post.hpp>) && !__has_include(<boost/asio/post.hpp>)
#define REDLOCK_ASIO_STANDALONE
#elif __has_include(<boost/asio/post.hpp>) && !__has_include(<asio/post.hpp>)
#define REDLOCK_ASIO_BOOST
#elif __has_include(<asio/post.hpp>)
#error "redlock/asio.hpp: both are installed: define REDLOCK_ASIO_STANDALONE or REDLOCK_ASIO_BOOST"
#else
#error "redlock/asio.hpp needs Asio (Debian: libasio-dev) or Boost.Asio (Debian: libboost-dev)"
#endif
#endif

#include <concepts>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <tl/expected.hpp>
#include <type_traits>
#include <unordered_set>
#include <utility>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/system_executor.hpp>
// Boost 1.77 and newer.
#if __has_include(<boost/asio/associated_cancellation_slot.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#define REDLOCK_ASIO_CANCELS 1
#else
#define REDLOCK_ASIO_CANCELS 0
#endif
#else
#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <asio/system_executor.hpp>
// Asio 1.20 and newer.
#if __has_include(<asio/associated_cancellation_slot.hpp>)
#include <asio/associated_cancellation_slot.hpp>
#define REDLOCK_ASIO_CANCELS 1
#else
#define REDLOCK_ASIO_CANCELS 0
#endif
#endif

#include <redlock/client.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock.hpp>
#include <redlock/operation.hpp>
#include <redlock/options.hpp>

namespace redlock {

// Each of the two libraries gives other functions, so that a program whose files differ in their
// choice has one definition of each function.
#if defined(REDLOCK_ASIO_BOOST)
inline namespace with_boost_asio {
namespace asio_library = ::boost::asio;
#else
inline namespace with_asio {
namespace asio_library = ::asio;
#endif

// The parts that the functions at the end of this file share.
namespace asio_detail {

/// A handler that waits for the result of its operation.
class WaitingHandler {
 public:
  WaitingHandler() = default;
  WaitingHandler(const WaitingHandler&) = delete;
  WaitingHandler& operator=(const WaitingHandler&) = delete;
  virtual ~WaitingHandler() = default;
  /// Called when the handler's execution context ends.
  virtual void abandon() noexcept = 0;
};

/// The waiting handlers of one execution context. An operation may get its result after the context
/// has gone, when nothing may be posted there any more.
class WaitingHandlers {
 public:
  /// False if the context has ended.
  [[nodiscard]] bool add(std::shared_ptr<WaitingHandler> handler) {
    const std::scoped_lock lock(mutex_);
    return !ended_ && handlers_.insert(std::move(handler)).second;
  }

  /// Calls `post` for the handler, unless that was abandoned. The context cannot end meanwhile.
  template <std::invocable Post>
  void take(const std::shared_ptr<WaitingHandler>& handler, Post post) {
    const std::scoped_lock lock(mutex_);
    if (handlers_.erase(handler) > 0) post();
  }

  void end() noexcept {
    std::unordered_set<std::shared_ptr<WaitingHandler>> left;
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
      left.swap(handlers_);
    }
    for (const auto& handler : left) handler->abandon();
  }

 private:
  std::mutex mutex_;
  bool ended_ = false;
  std::unordered_set<std::shared_ptr<WaitingHandler>> handlers_;
};

/// Abandons the waiting handlers when the execution context ends.
class WaitingService final : public asio_library::execution_context::service {
 public:
  static inline asio_library::execution_context::id id;

  explicit WaitingService(asio_library::execution_context& context) : service(context) {}
  [[nodiscard]] const std::shared_ptr<WaitingHandlers>& handlers() const { return handlers_; }

 private:
  void shutdown() noexcept override { handlers_->end(); }

  const std::shared_ptr<WaitingHandlers> handlers_ = std::make_shared<WaitingHandlers>();
};

/// Null for an executor without an execution context.
template <typename Executor>
[[nodiscard]] std::shared_ptr<WaitingHandlers> handlers_at(const Executor& executor) {
  using Context = asio_library::execution_context;
  if constexpr (requires {
                  static_cast<Context&>(
                      asio_library::query(executor, asio_library::execution::context));
                }) {
    Context& context = asio_library::query(executor, asio_library::execution::context);
    return asio_library::use_service<WaitingService>(context).handlers();
  } else {
    return nullptr;
  }
}

/// The function that is posted to the handler's executor. The handler itself is not moved: the
/// remains of a moved handler (a const capture is copied) would be destroyed on the client's
/// thread, perhaps after the handler was called.
template <typename Handler, typename T>
struct ReadyHandler {
  using allocator_type = asio_library::associated_allocator_t<Handler>;
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return asio_library::get_associated_allocator(*handler);
  }
  void operator()() {
    Handler& called = *handler;
    std::move(called)(std::move(result));
  }

  std::unique_ptr<Handler> handler;
  Result<T> result;
};

/// How an operation may be ended before it has its result.
struct AsioStop {
  /// The source of the operation's token; without a state if nothing can end the operation.
  std::stop_source source{std::nostopstate};
  /// The caller's own token.
  std::stop_token callers{};
};

template <typename Handler, typename T>
class HandlerOf final : public WaitingHandler {
 public:
  HandlerOf(Handler&& handler, AsioStop stop)
      : work_(std::in_place,
              asio_library::get_associated_executor(handler, asio_library::system_executor())),
        handlers_(handlers_at(work_->get_executor())),
        handler_(std::make_unique<Handler>(std::move(handler))),
        stop_(std::move(stop)) {
    if (!stop_.source.stop_possible()) return;
    if (stop_.callers.stop_possible()) forwarded_.emplace(stop_.callers, Forward{stop_.source});
#if REDLOCK_ASIO_CANCELS
    // The function stays in the slot when the operation is over, and does nothing then: nothing
    // tells whether the slot still exists at that time.
    auto slot = asio_library::get_associated_cancellation_slot(*handler_);
    if (!slot.is_connected()) return;
    slot.assign([source = stop_.source](auto type) {
      if (type != decltype(type)::none) source.request_stop();
    });
#endif
  }

  static void start(Handler&& handler, Operation<T>&& operation, AsioStop&& stop) {
    const auto self = std::make_shared<HandlerOf>(std::move(handler), std::move(stop));
    if (self->handlers_ && !self->handlers_->add(self)) return;
    std::move(operation).start(
        [self](Result<T> result) { self->complete(self, std::move(result)); });
  }

  void abandon() noexcept override {
    stop_.source.request_stop();
    work_.reset();
    handler_.reset();
  }

 private:
  using Executor = asio_library::associated_executor_t<Handler, asio_library::system_executor>;
  struct Forward {
    std::stop_source to;
    void operator()() const noexcept { to.request_stop(); }
  };

  /// Never in start(), and never on the client's own thread: posting sees to both.
  void complete(const std::shared_ptr<WaitingHandler>& self, Result<T>&& result) {
    forwarded_.reset();
    const auto post = [&] {
      asio_library::post(work_->get_executor(),
                         ReadyHandler<Handler, T>{std::move(handler_), std::move(result)});
      work_.reset();
    };
    if (!handlers_) return post();
    handlers_->take(self, post);
  }

  // Its executor counts this as work until the handler is posted. The only copy of the executor: a
  // strand must not outlive its context.
  std::optional<asio_library::executor_work_guard<Executor>> work_;
  const std::shared_ptr<WaitingHandlers> handlers_;
  std::unique_ptr<Handler> handler_;
  AsioStop stop_;
  std::optional<std::stop_callback<Forward>> forwarded_;
};

template <typename T, typename Token>
auto initiate(Operation<T> operation, AsioStop stop, Token&& token) {
  return asio_library::async_initiate<Token, void(Result<T>)>(
      [](auto handler, Operation<T> begun, AsioStop ends) {
        HandlerOf<decltype(handler), T>::start(std::move(handler), std::move(begun),
                                               std::move(ends));
      },
      token, std::move(operation), std::move(stop));
}

/// Of an operation that has the token of its source.
[[nodiscard]] inline AsioStop ended_by(std::stop_token callers) {
  return {std::stop_source(), std::move(callers)};
}

}  // namespace asio_detail

/// The functions below are async_ members of RedLock and Lease, which say what each does and what
/// its result is; async_start() takes the operation of every other one. `token` is any completion
/// token; handlers are called with one Result<T>. So with use_awaitable nothing is thrown and the
/// whole error, with the votes of the nodes, is in the result; one line throws instead:
///
///     if (!lease) throw std::system_error(make_error_code(lease.error().code));
///
/// The handler is posted to its associated executor, which counts the operation as work meanwhile,
/// and is never called on the client's own thread; a handler without an executor is called on a
/// thread of Asio's system executor. ClientOptions::resume_on is not needed, and costs one more
/// hand-over.
///
/// A function that may be given a stop_token is ended by the handler's cancellation slot, by
/// each of the types total, partial and terminal, as well as by that token: the result is then
/// `cancelled`, and nothing is held. A request that comes after the lock was granted is too late
/// and changes nothing: the result is the lease, which is released if the result is dropped. So
///
///     co_await (redlock::async_acquire(lock, {.wait = forever}, use_awaitable) ||
///               timer.async_wait(use_awaitable))
///
/// ends with the timer, and leaves nothing locked. A coroutine of co_spawn() passes on terminal
/// alone, which `||` sends; total and partial reach an operation in it only after
/// `co_await this_coro::reset_cancellation_state(enable_total_cancellation())`. What async_start()
/// is given is not ended by a slot: it takes one node timeout (async_close() `at_most`) at most,
/// and a release is sent to all nodes in any case. Asio older than 1.20 (Boost 1.77) has no slots.
///
/// An execution context may end before the operation: the handler is then destroyed and not called,
/// as with Asio's own operations, and a lease that would have been the result is released.
template <typename Token>
auto async_acquire(RedLock& lock, const AcquireOptions& options, std::stop_token stop,
                   Token&& token) {
  auto ends = asio_detail::ended_by(std::move(stop));
  auto operation = lock.async_acquire(options, ends.source.get_token());
  return asio_detail::initiate(std::move(operation), std::move(ends), std::forward<Token>(token));
}
/// The same without a stop_token.
template <typename Token>
auto async_acquire(RedLock& lock, const AcquireOptions& options, Token&& token) {
  return async_acquire(lock, options, std::stop_token(), std::forward<Token>(token));
}

/// The same with the default options: one attempt.
template <typename Token>
auto async_acquire(RedLock& lock, Token&& token) {
  return async_acquire(lock, AcquireOptions(), std::forward<Token>(token));
}

/// RedLock::async_attach() with a completion token.
template <typename Token>
auto async_attach(RedLock& lock, const Grant& grant, const AcquireOptions& options,
                  std::stop_token stop, Token&& token) {
  auto ends = asio_detail::ended_by(std::move(stop));
  auto operation = lock.async_attach(grant, options, ends.source.get_token());
  return asio_detail::initiate(std::move(operation), std::move(ends), std::forward<Token>(token));
}
/// The same without a stop_token.
template <typename Token>
auto async_attach(RedLock& lock, const Grant& grant, const AcquireOptions& options, Token&& token) {
  return async_attach(lock, grant, options, std::stop_token(), std::forward<Token>(token));
}

/// The lock must have been made with an Owner, and must live until the result is there. A level
/// that was taken stays with the lock when the result is dropped, by `||` or with its context: then
/// only RedLock::async_release() or unlock() gives the level back.
template <typename Token>
auto async_try_lock(RedLock& lock, const AcquireOptions& options, std::stop_token stop,
                    Token&& token) {
  auto ends = asio_detail::ended_by(std::move(stop));
  auto operation = lock.async_try_lock(options, ends.source.get_token());
  return asio_detail::initiate(std::move(operation), std::move(ends), std::forward<Token>(token));
}
/// The same without a stop_token.
template <typename Token>
auto async_try_lock(RedLock& lock, const AcquireOptions& options, Token&& token) {
  return async_try_lock(lock, options, std::stop_token(), std::forward<Token>(token));
}

/// Lease::async_lost() with a completion token, to be awaited beside the work that must stop then:
///
///     co_await (work(lease->token()) || redlock::async_lost(*lease, use_awaitable))
///
/// Whichever ends first cancels the other, so `work` has to give up at once when it is cancelled.
template <typename Token>
auto async_lost(const Lease& lease, std::stop_token stop, Token&& token) {
  auto ends = asio_detail::ended_by(std::move(stop));
  auto operation = lease.async_lost(ends.source.get_token());
  return asio_detail::initiate(std::move(operation), std::move(ends), std::forward<Token>(token));
}
/// The same without a stop_token.
template <typename Token>
auto async_lost(const Lease& lease, Token&& token) {
  return async_lost(lease, std::stop_token(), std::forward<Token>(token));
}

/// Operation::start() with a completion token in place of a callback, for an operation that nothing
/// ends early:
///
///     co_await redlock::async_start(lease->async_release(), use_awaitable)
///
/// With a handler the operation has started when this returns, with use_awaitable when it is
/// awaited: from then on the client of an async_close() may be destroyed.
template <typename T, typename Token>
auto async_start(Operation<T> operation, Token&& token) {
  return asio_detail::initiate(std::move(operation), {}, std::forward<Token>(token));
}

}  // namespace with_asio or with_boost_asio
}  // namespace redlock
