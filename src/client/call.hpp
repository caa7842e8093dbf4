// SPDX-License-Identifier: MIT
// One operation of any kind, as the client's loop sees it; call_for.hpp has the rest.
#pragma once

#include <string>
#include <utility>

#include <redlock/client.hpp>

#include "engine/engine.hpp"
#include "net/task.hpp"

namespace redlock::client {

using EngineResult = decltype(engine::Finish::result);

/// The answer that a caller of this gets: see call_for.hpp.
template <typename Ask>
using SuccessOf = typename decltype(std::declval<const Ask&>().read(
    std::declval<Client::Impl&>(), std::declval<const EngineResult&>()))::value_type;

/// A call as the client's loop sees it.
class Call : public net::Task {
 public:
  /// Who waits for the answer: the thread that calls, on which no users' code runs meanwhile;
  /// users' code elsewhere; or the library itself.
  enum class Waits { here, elsewhere, nowhere };

  Call(Client::Impl& client, Waits where) : client_(client), waits_(where) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] bool blocking() const { return waits_ == Waits::here; }
  /// Whether users continue with the answer, where ClientOptions::resume_on says.
  [[nodiscard]] bool continues() const { return waits_ == Waits::elsewhere; }
  /// The thread that waits for the answer has the loop's seat, and runs this call there.
  [[nodiscard]] bool seated() const { return seated_; }
  void set_seated() { seated_ = true; }

  /// Enters the call in the client's table and asks the engine; or fails it, if the client is
  /// closing.
  void run() final;

  /// Gives the request to the engine, whose output Finish will have this number.
  virtual void ask_engine(engine::Instant now, engine::RequestId id) = 0;
  /// The name of the lock.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Exactly one of these two is called, once; the call may be gone afterwards. The call is
  /// answered in any case, also if an exception leaves these functions: one of users' code that
  /// continues with the answer, or a lack of memory for any answer but `closed`.
  virtual void succeed(const EngineResult& result) = 0;
  virtual void fail(Error&& error) = 0;
  /// The client is closing: cancels a call that may wait long. Other calls end within the node
  /// timeout.
  virtual void close(engine::Instant now, engine::RequestId id) = 0;

 protected:
  ~Call() = default;
  [[nodiscard]] Client::Impl& client() const { return client_; }

 private:
  Client::Impl& client_;
  const Waits waits_;
  bool seated_ = false;
};

}  // namespace redlock::client
