// SPDX-License-Identifier: MIT
// The client behind Client: it hands calls to the engine on the loop thread, finds the call or the
// lease that each output of the engine belongs to, and ends everything in good order.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <redlock/callback.hpp>
#include <redlock/client.hpp>

#include "client/call.hpp"
#include "client/final_releases.hpp"
#include "client/gate.hpp"
#include "client/held_locks.hpp"
#include "client/lease_state.hpp"
#include "client/loss_guard.hpp"
#include "client/posted_function.hpp"
#include "client/reporter.hpp"
#include "client/sentence.hpp"
#include "client/tracer.hpp"
#include "engine/engine.hpp"
#include "engine/id_table.hpp"
#include "net/core.hpp"
#include "tls/tls_context.hpp"

namespace redlock {

class REDLOCK_NO_EXPORT Client::Impl final : public wire::DriverHost,
                                             public std::enable_shared_from_this<Impl> {
 public:
  /// Without a given loop the client makes its own loop, and a thread that runs it.
  static Result<std::shared_ptr<Impl>> create(ClientOptions options, uv_loop_s* loop);
  Impl(ClientOptions options, std::vector<wire::NodeAddress> nodes,
       std::shared_ptr<tls::TlsContext> tls, bool on_given_loop);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Any thread.

  [[nodiscard]] const ClientOptions& options() const { return options_; }
  /// In the order of ClientOptions::nodes, which is that of every vote and ballot. Each has its
  /// place in the set now: the server there may be another one than at first.
  /// By their numbers. Without a label: no node has this number.
  [[nodiscard]] std::vector<wire::NodeAddress> nodes() const {
    const std::lock_guard lock(nodes_mutex_);
    return nodes_;
  }
  /// Null if no node has TLS.
  [[nodiscard]] const std::shared_ptr<tls::TlsContext>& tls() const { return tls_; }

  /// False, and the task will not run, if the client is closed or this is the child of a fork.
  [[nodiscard]] bool post(net::Task& task) noexcept;
  /// The same for a call, which is refused as soon as shut_down() begins. A blocking one may get
  /// the loop's seat in place of being posted, and then its thread must drive().
  [[nodiscard]] bool post(client::Call& call) noexcept;
  /// Runs the call and the loop until its answer is there, or the loop thread is needed.
  void drive(client::Call& call, const net::OneShotEvent& answer);
  /// The same for a function, which is copied or moved to the heap.
  template <std::invocable Function>
  [[nodiscard]] bool post(Function function);
  /// The same for a function that must run, from a caller that cannot fail: without memory for it
  /// the client ends.
  template <std::invocable Function>
  void post_or_end(Function function) noexcept;
  /// Ends the client as an exception on its loop does: see on_failure().
  void end_for_want_of_memory() noexcept;
  /// Whether the failure has begun.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// Why post() returned false, or why the client now answers with this error only.
  [[nodiscard]] Error closed_error() const noexcept;
  /// The answer to a blocking call of a thread that must not wait.
  [[nodiscard]] Error would_deadlock_error() const;
  /// True on the loop thread, where nothing may wait for the loop.
  [[nodiscard]] bool on_loop_thread() noexcept;
  /// Whether the program runs the loop, and so no call may wait for it, on whichever thread.
  [[nodiscard]] bool on_given_loop() const noexcept { return on_given_loop_; }
  /// On a given loop always. Otherwise on the loop thread, or on the guard's, which requests lost()
  /// while the loop is held up.
  [[nodiscard]] bool must_not_wait() noexcept {
    return on_given_loop() || guard_.on_own_thread() || on_loop_thread();
  }
  /// Whether this is the copy of a client in the child of a fork.
  [[nodiscard]] bool forked() const noexcept;
  /// Whether users continue by ClientOptions::resume_on, whose threads no child of a fork has.
  [[nodiscard]] bool resumes_elsewhere() const noexcept { return options_.resume_on && !forked(); }

  // These two are in call_for.hpp, for the files that offer operations.

  /// Performs the question and waits for the answer. An `ask` that is an error already is the
  /// answer.
  template <typename Ask>
  Result<client::SuccessOf<Ask>> perform(Result<Ask> ask);
  /// The same as an operation that is to be started.
  template <typename Ask>
  Operation<client::SuccessOf<Ask>> prepare(
      Result<Ask> ask, client::Call::Waits waits = client::Call::Waits::elsewhere);

  /// The locks that are held by lock() and the other locking functions.
  [[nodiscard]] client::HeldLocks& held() { return held_; }
  /// The same as leave(), without an answer and from any thread.
  void leave_later(const client::HeldLocks::Key& key) noexcept;
  /// The guard of the leases whose lost() was asked for.
  [[nodiscard]] client::LossGuard& guard() { return guard_; }

  /// Reports to the observer a release whose result no caller gets. If `lease` was held, the
  /// observer may have been told before that it is lost.
  void report_release_failed(engine::Name name, Error error, const Lease::State* lease) noexcept;

  /// Reports to the observer a call for a lock that ended before it began, on its caller's thread.
  void report_call_later(const std::string& name, Errc failure);

  /// Ends everything, as ~Client promises, unless that was done before. From any thread.
  void shut_down() noexcept;
  /// The same, with a report, as Client::close promises.
  Result<CloseReport> close(std::chrono::milliseconds at_most);
  /// The same without waiting; see PreparedOperation::start.
  [[nodiscard]] std::optional<Result<CloseReport>> start_closing(std::chrono::milliseconds at_most,
                                                                 Callback<CloseReport>& callback);

  // Only by the thread that drives: the loop thread, or a caller that has its seat (net/core.hpp).

  [[nodiscard]] net::Core& core() { return *core_; }
  /// Whether shut_down() has begun: locks that are granted now are not handed out any more.
  [[nodiscard]] bool closing() const { return closing_ || ended_; }
  void begin(client::Call& call);
  void cancel(engine::RequestId id);
  /// A lease for what the engine granted.
  [[nodiscard]] std::shared_ptr<Lease::State> add_lease(const engine::AcquireSucceeded& granted);
  /// Null if there is none, or its end has begun.
  [[nodiscard]] std::shared_ptr<Lease::State> find_lease(engine::GrantId grant) const;
  /// One level less of what an owner holds; see Engine::leave.
  void leave(engine::RequestId id, const client::HeldLocks::Key& key);
  /// The lease is over for its holder: outputs of the engine about it are ignored from now on.
  /// False if that was so already.
  bool forget(engine::GrantId grant);

  [[nodiscard]] const client::Reporter& reporter() const { return reporter_; }

  void on_output(engine::ClientOutput&& output) override;
  void on_node_moved(engine::NodeIndex node, const wire::NodeAddress& address) override;
  void on_node_up(engine::NodeIndex node, std::string_view warning) override;
  void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) override;
  void on_send(const engine::Send& send) override;
  void on_reply(engine::NodeIndex node, const engine::Tag& tag,
                const engine::Reply& reply) override;
  void on_wake(engine::NodeIndex node, const wire::Wake& wake) override;

 private:
  /// Nothing, or the resource that the system did not give.
  tl::expected<void, std::string> start(net::CoreConfig config, uv_loop_s* loop);

  /// The core has failed (net::CoreConfig::failed): answers every call with `closed`, has every
  /// lease lost, and tells the observer, or stderr. Allocates only what it cannot do without.
  void on_failure(const std::exception_ptr& why) noexcept;
  void describe_failure(const std::exception_ptr& why) noexcept;

  void put_off(engine::ClientOutput&& output);
  void perform_output(engine::ClientOutput&& output);
  [[nodiscard]] bool callers_may_drive() const;

  /// Performs the outputs that were put off.
  struct ResumeOutputs final : net::Task {
    explicit ResumeOutputs(Impl& of) : client(of) {}
    void run() override;
    Impl& client;
  };

  struct EndForWantOfMemory final : net::Task {
    void run() override { throw std::bad_alloc(); }
  };

  void on(engine::Finish&& output);
  void on(engine::ValidityChanged&& output);
  void on(engine::LeaseLost&& output);
  void on(engine::RenewalDecided&& output);
  /// Outputs that concern only the program.
  template <typename Output>
  void on(Output&& output) {
    reporter_.on(output);
  }
  [[nodiscard]] Error describe(const std::string& name, const engine::Failed& failed) const;
  [[nodiscard]] client::Rival rival_for(const std::string& name) const;

  // The steps of shut_down(): with a loop of our own, finish_everything() on another thread has the
  // loop do them and waits in between; on a given loop the loop's timer does.
  void finish_everything(std::chrono::milliseconds at_most);
  void finish_behind(std::chrono::milliseconds at_most) noexcept;
  void go_on_closing();
  void leave_given_loop();
  void tell_closed() noexcept;
  struct BeginClosing final : net::Task {
    explicit BeginClosing(Impl& of) : client(of) {}
    void run() override;
    Impl& client;
    std::chrono::milliseconds at_most{};
  };

  void begin_closing(std::chrono::milliseconds at_most);
  /// The loss, if it is new, and the observer of it.
  void report_closed(Lease::State& lease);
  /// When to look again; nothing: enough.
  [[nodiscard]] std::optional<std::chrono::microseconds> await_answers();
  void fail_leftovers();
  template <typename Step>
  void run_on_loop(Step step);

  const ClientOptions options_;
  mutable std::mutex nodes_mutex_;        // not taken by the thread that drives, to read
  std::vector<wire::NodeAddress> nodes_;  // changed by the thread that drives
  const std::shared_ptr<tls::TlsContext> tls_;
  const bool on_given_loop_;
  const std::uint64_t generation_;
  const client::Reporter reporter_{options_, nodes_};
  const client::Tracer tracer_{options_.trace};
  client::Gate gate_;
  client::HeldLocks held_;
  client::LossGuard guard_;
  std::unique_ptr<net::Core> core_;
  std::atomic<bool> ended_{false};  // shut_down() or close() has begun
  std::atomic<bool> failed_{false};
  std::array<char, 200> failure_{};  // a sentence, before failed_ is set
  EndForWantOfMemory end_for_want_of_memory_;
  std::atomic<bool> ends_for_want_of_memory_{false};

  // Only by the thread that drives.
  bool closing_ = false;
  bool caller_drives_ = false;
  /// How many calls in succession were blocking and alone in the client; counts no further than
  /// needed.
  int calls_alone_ = enough_alone;
  static constexpr int enough_alone = 8;
  /// Outputs that must not run on the thread of a caller, and all that came after them.
  std::vector<engine::ClientOutput> put_off_;
  ResumeOutputs resume_outputs_{*this};
  engine::RequestId last_request_ = 0;
  struct KnownCall {
    engine::RequestId request = 0;
    client::Call* call = nullptr;
    [[nodiscard]] engine::RequestId id() const { return request; }
  };
  engine::IdTable<KnownCall> calls_;
  struct KnownLease {
    std::shared_ptr<Lease::State> lease;
    [[nodiscard]] engine::GrantId id() const { return lease->grant; }
  };
  engine::IdTable<KnownLease> leases_;
  client::FinalReleases final_releases_{options_.node_timeout, last_request_};
  BeginClosing begin_closing_{*this};
  /// On a given loop, from the end of the Client until nothing of the client is left on the loop.
  std::shared_ptr<Impl> kept_;
  std::optional<Callback<CloseReport>> closed_callback_;
};

template <std::invocable Function>
bool Client::Impl::post(Function function) {
  auto task = std::make_unique<client::PostedFunction<Function>>(std::move(function));
  if (!post(*task)) return false;
  static_cast<void>(task.release());  // it destroys itself, which may have happened already
  return true;
}

template <std::invocable Function>
void Client::Impl::post_or_end(Function function) noexcept {
  try {
    static_cast<void>(post(std::move(function)));
  } catch (const std::bad_alloc&) {
    end_for_want_of_memory();
  }
}

}  // namespace redlock
