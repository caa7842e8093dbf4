// SPDX-License-Identifier: MIT
// A call for one question: a blocking caller keeps it on its own stack; an Operation is a call on
// the heap, which keeps itself from its start to its answer. Until the start a call belongs to the
// thread that made it, then to the loop thread.
//
// The question is a struct, beside the function that offers it (lease.cpp, requests.hpp):
//
//     struct AskAcquire {
//       const std::string& name() const;                        // that is worked on
//       void ask_engine(client, now, id) const;                 // on the loop thread
//       Result<Lease> read(client, result) const;               // there, once the engine is done
//
//       // Those that have them:
//       std::stop_token stop;                                   // it may wait for long
//       std::optional<Error> before_start(client) const;        // on the caller's thread; an error
//                                                               // is the answer
//       std::optional<Result<Lease>> post(client, call) const;  // in place of posting the call;
//                                                               // the answer if it is known
//       void explain(error) const;                              // says more of a failure
//     };
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <redlock/callback.hpp>
#include <redlock/continuation.hpp>
#include <redlock/operation.hpp>

#include "client/call.hpp"
#include "client/client_impl.hpp"
#include "net/one_shot_event.hpp"

namespace redlock::client {

/// Posts the cancellation of a request; called from whichever thread requests the stop.
struct Canceller {
  Client::Impl* client;
  engine::RequestId id;
  void operator()() const noexcept {
    client->post_or_end([of = client, request = id] { of->cancel(request); });
  }
};

/// The step by which users' code continues where ClientOptions::resume_on says.
template <typename T>
struct Resumption final : Continuation::Step {
  explicit Resumption(Callback<T>&& with) : callback(std::move(with)) {}
  void run() override { callback(std::move(*known)); }
  Callback<T> callback;
  std::optional<Result<T>> known;
};

/// The callback, or one that has it called as ClientOptions::resume_on says. Made when an operation
/// starts: at its end, a lack of memory could not be reported.
template <typename T>
[[nodiscard]] Callback<T> resuming(const Client::Impl& client, Callback<T>&& callback) {
  if (!client.resumes_elsewhere()) return std::move(callback);
  return [&client, step = std::make_unique<Resumption<T>>(std::move(callback))](
             Result<T> result) mutable noexcept {
    step->known.emplace(std::move(result));
    client.options().resume_on(Continuation(std::unique_ptr<Continuation::Step>(std::move(step))));
  };
}

/// The operation whose result is known before it starts.
template <typename T>
class FailedOperation final : public PreparedOperation<T> {
 public:
  FailedOperation(std::shared_ptr<Client::Impl> client, Error error)
      : client_(std::move(client)), error_(std::move(error)) {}
  [[nodiscard]] std::optional<Result<T>> start(std::unique_ptr<PreparedOperation<T>> /*self*/,
                                               Callback<T>& callback) override {
    if (!client_ || !client_->resumes_elsewhere()) return tl::make_unexpected(std::move(error_));
    resuming(*client_, std::move(callback))(tl::make_unexpected(std::move(error_)));
    return std::nullopt;
  }

 private:
  std::shared_ptr<Client::Impl> client_;
  Error error_;
};

/// `client` is null if unknown.
template <typename T>
[[nodiscard]] Operation<T> failed_operation(std::shared_ptr<Client::Impl> client, Error error) {
  return Operation<T>(std::make_unique<FailedOperation<T>>(std::move(client), std::move(error)));
}

template <typename Ask>
class CallFor final : public Call, public PreparedOperation<SuccessOf<Ask>> {
 public:
  using Success = SuccessOf<Ask>;

  CallFor(Client::Impl& client, Ask&& ask, Waits where)
      : Call(client, where), ask_(std::move(ask)) {}

  /// The start of every operation, on the caller's thread: see PreparedOperation. `self` keeps this
  /// call until it is answered; null if the caller does.
  [[nodiscard]] std::optional<Result<Success>> start(
      std::unique_ptr<PreparedOperation<Success>> self, Callback<Success>& callback) override;

  /// For an Operation, which may be started after its client was destroyed.
  void keep(std::shared_ptr<Client::Impl> client) { kept_client_ = std::move(client); }

  void ask_engine(engine::Instant now, engine::RequestId id) override {
    ask_.ask_engine(client(), now, id);
    if constexpr (waits) {
      if (ask_.stop.stop_possible()) stop_.emplace(ask_.stop, Canceller{&client(), id});
    }
  }
  [[nodiscard]] const std::string& name() const override { return ask_.name(); }
  void succeed(const EngineResult& result) override {
    stop_.reset();
    answer([&] {
      auto known = ask_.read(client(), result);
      if (!known) explain(known.error());
      return known;
    });
  }
  void fail(Error&& error) override {
    stop_.reset();
    answer([&]() -> Result<Success> {
      explain(error);
      return tl::make_unexpected(std::move(error));
    });
  }
  void close(engine::Instant now, engine::RequestId id) override {
    // Others end by themselves within the node timeout, for which the closing client waits.
    if constexpr (waits) client().core().engine().cancel(now, id, Errc::closed);
  }

 private:
  static constexpr bool waits = requires(Ask ask) { ask.stop; };

  /// The answer, if it is known at once; then the callback stays where it is.
  std::optional<Result<Success>> begin(Client::Impl& of,
                                       std::unique_ptr<PreparedOperation<Success>> self,
                                       Callback<Success>& callback);

  void explain(Error& error) const {
    if constexpr (requires { ask_.explain(error); }) ask_.explain(error);
  }

  /// Answers with the result of `make`; without memory for that, or if the observer throws, the
  /// client ends, this call before all others.
  template <typename Make>
  void answer(const Make& make) {
    std::optional<Result<Success>> known;
    std::exception_ptr problem;
    try {
      known.emplace(make());
      if constexpr (waits) {
        client().reporter().call_ended(ask_.name(),
                                       *known ? std::nullopt : std::optional(known->error().code));
      }
    } catch (...) {
      problem = std::current_exception();
      if (!known) known.emplace(tl::make_unexpected(Error{Errc::closed, "out of memory", {}}));
    }
    complete(std::move(*known));
    if (problem) std::rethrow_exception(problem);
  }

  void complete(Result<Success>&& result) {
    Callback<Success> callback = std::move(*callback_);
    // The request is destroyed before the answer, because the caller may destroy everything else
    // then.
    auto self = std::move(self_);
    self.reset();
    callback(std::move(result));
  }

  Ask ask_;
  std::shared_ptr<Client::Impl> kept_client_;
  std::optional<Callback<Success>> callback_;
  std::unique_ptr<PreparedOperation<Success>> self_;
  std::optional<std::stop_callback<Canceller>> stop_;
};

template <typename Ask>
auto CallFor<Ask>::start(std::unique_ptr<PreparedOperation<Success>> self,
                         Callback<Success>& callback) -> std::optional<Result<Success>> {
  Client::Impl& of = client();
  const bool elsewhere = continues() && of.resumes_elsewhere();
  // As soon as it is posted, this call may be answered and destroyed.
  const auto kept = std::move(kept_client_);
  if (elsewhere) callback = resuming(of, std::move(callback));
  auto known = begin(of, std::move(self), callback);
  if (!known || !elsewhere) return known;
  callback(std::move(*known));
  return std::nullopt;
}

template <typename Ask>
auto CallFor<Ask>::begin(Client::Impl& of, std::unique_ptr<PreparedOperation<Success>> self,
                         Callback<Success>& callback) -> std::optional<Result<Success>> {
  if constexpr (requires { ask_.before_start(of); }) {
    if (auto error = ask_.before_start(of)) {
      if constexpr (waits) of.report_call_later(ask_.name(), error->code);
      return tl::make_unexpected(std::move(*error));
    }
  }
  self_ = std::move(self);
  callback_.emplace(std::move(callback));
  std::optional<Result<Success>> known;
  try {
    if constexpr (requires { ask_.post(of, *this); }) {
      known = ask_.post(of, *this);
    } else if (!of.post(*this)) {
      known = tl::make_unexpected(of.closed_error());
    }
  } catch (...) {  // it was not posted
    self = std::move(self_);
    throw;
  }
  if (!known) return known;
  self = std::move(self_);
  callback = std::move(*callback_);
  return known;
}

}  // namespace redlock::client

namespace redlock {

template <typename Ask>
Result<client::SuccessOf<Ask>> Client::Impl::perform(Result<Ask> ask) {
  if (!ask) return tl::make_unexpected(std::move(ask.error()));
  if (must_not_wait()) return tl::make_unexpected(would_deadlock_error());
  using Success = typename client::CallFor<Ask>::Success;
  std::optional<Result<Success>> answer;
  net::OneShotEvent ready;
  client::CallFor<Ask> call(*this, std::move(*ask), client::Call::Waits::here);
  Callback<Success> callback = [&](Result<Success> result) {
    answer.emplace(std::move(result));
    ready.give();
  };
  if (auto known = call.start(nullptr, callback)) return std::move(*known);
  if (call.seated()) drive(call, ready);
  ready.await();
  return std::move(*answer);
}

template <typename Ask>
Operation<client::SuccessOf<Ask>> Client::Impl::prepare(Result<Ask> ask,
                                                        client::Call::Waits waits) {
  using Success = typename client::CallFor<Ask>::Success;
  if (!ask) return client::failed_operation<Success>(shared_from_this(), std::move(ask.error()));
  auto call = std::make_unique<client::CallFor<Ask>>(*this, std::move(*ask), waits);
  call->keep(shared_from_this());
  return Operation<Success>(std::move(call));
}

}  // namespace redlock
