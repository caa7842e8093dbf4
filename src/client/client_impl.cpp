// SPDX-License-Identifier: MIT
// The client while it runs; closing.cpp has how it ends.
#include "client/client_impl.hpp"

#include <algorithm>
#include <cassert>
#include <variant>

#include "client/fork.hpp"
#include "client/options_check.hpp"
#include "client/sentence.hpp"
#include "client/stderr_warning.hpp"
#include "tls/tls_context.hpp"
#include "wire/words.hpp"

namespace redlock {

namespace {

/// So that a set can grow while its clients run. Leases take no room for these slots (NodeGrants).
std::uint32_t slots_for(std::uint32_t nodes) {
  constexpr std::uint32_t usual = 7;
  return std::clamp(nodes + 2, usual, engine::NodeSet::max_nodes);
}

net::CoreConfig core_config(const ClientOptions& options, std::vector<wire::NodeAddress> nodes) {
  net::CoreConfig config;
  config.engine.nodes = static_cast<std::uint32_t>(nodes.size());
  config.engine.drift_factor = options.drift_factor;
  config.engine.node_timeout = options.node_timeout;
  config.engine.retry_min = options.retry_min;
  config.engine.retry_max = options.retry_max;
  config.engine.retry_cap = options.retry_cap;
  config.engine.clock_floor = options.fence_floor == FenceFloor::clock;
  config.engine.max_lease = client::own_max_lease(options);
  config.engine.quarantine = options.quarantine == Quarantine::on;
  if (config.engine.quarantine) config.engine.slots = slots_for(config.engine.nodes);
  config.nodes = std::move(nodes);
  // A node's clock is compared with its readings within the longest lease; where that is not given,
  // the driver follows what the nodes say.
  if (config.engine.max_lease > config.engine.max_lease.zero()) {
    config.probe_interval = std::clamp<std::chrono::milliseconds>(
        config.engine.max_lease / 6, std::chrono::milliseconds(100), config.probe_interval);
  }
  config.resolve_timeout = options.resolve_timeout;
  config.connect_timeout = options.connect_timeout;
  config.client_name = options.client_name;
  config.label = options.label;
  config.password = options.password;
  return config;
}

/// Null if no node has TLS. Gives the common name to those nodes that have none of their own.
Result<std::shared_ptr<tls::TlsContext>> load_tls(const TlsOptions& options,
                                                  std::vector<wire::NodeAddress>& nodes) {
  bool wanted = false;
  for (wire::NodeAddress& node : nodes) {
    if (!node.tls) continue;
    wanted = true;
    if (node.tls_name.empty()) node.tls_name = options.name;
  }
  if (!wanted) return nullptr;
  auto context = tls::load(options);
  if (context) return std::move(*context);
  return tl::make_unexpected(Error{Errc::invalid_argument, std::move(context.error()), {}});
}

}  // namespace

Result<std::shared_ptr<Client::Impl>> Client::Impl::create(ClientOptions options, uv_loop_s* loop) {
  auto nodes = client::check_client_options(options);
  if (!nodes) return tl::make_unexpected(std::move(nodes.error()));
  auto tls = load_tls(options.tls, *nodes);
  if (!tls) return tl::make_unexpected(std::move(tls.error()));
  net::CoreConfig config = core_config(options, *nodes);
  config.tls = *tls;
  nodes->resize(std::max(config.engine.nodes, config.engine.slots));
  auto impl = std::make_shared<Impl>(std::move(options), std::move(*nodes), std::move(*tls),
                                     loop != nullptr);
  impl->reporter_.nodes_added();
  const auto started = impl->start(std::move(config), loop);
  if (started) return impl;
  impl->reporter_.nodes_removed();
  return tl::make_unexpected(
      Error{Errc::closed, "the client could not start: " + started.error(), {}});
}

tl::expected<void, std::string> Client::Impl::start(net::CoreConfig config, uv_loop_s* loop) {
  config.failed = [this](const std::exception_ptr& why) { on_failure(why); };
  if (loop != nullptr) {
    guard_.stop();  // it would need a thread
    config.in_child = [this] { return forked(); };
  } else if (!options_.observer && !options_.password) {
    // An observer is called for each call before the call is answered, so its thread is needed
    // anyway. A function that gives passwords is never called on a thread that is blocked in a
    // call.
    config.callers_may_drive = [this] { return callers_may_drive(); };
  }
  auto core = loop != nullptr ? net::Core::start(std::move(config), *this, *loop)
                              : net::Core::start(std::move(config), *this);
  if (!core) return tl::unexpected(std::move(core.error()));
  core_ = std::move(*core);
  return {};
}

Client::Impl::Impl(ClientOptions options, std::vector<wire::NodeAddress> nodes,
                   std::shared_ptr<tls::TlsContext> tls, bool on_given_loop)
    : options_(std::move(options)),
      nodes_(std::move(nodes)),
      tls_(std::move(tls)),
      on_given_loop_(on_given_loop),
      generation_(client::process_generation()) {}

Client::Impl::~Impl() {
  assert(core_ == nullptr);
}

bool Client::Impl::post(net::Task& task) noexcept {
  if (forked() || !gate_.enter()) return false;
  const bool accepted = core_->post(task);
  gate_.leave();
  return accepted;
}

bool Client::Impl::post(client::Call& call) noexcept {
  if (ended_) return false;
  if (!call.blocking()) return post(static_cast<net::Task&>(call));
  if (forked() || !gate_.enter()) return false;
  if (core_->take_seat()) {
    call.set_seated();  // drive() leaves the gate
    return true;
  }
  const bool accepted = core_->post(call);
  gate_.leave();
  return accepted;
}

void Client::Impl::drive(client::Call& call, const net::OneShotEvent& answer) {
  core_->drive(call, answer, caller_drives_);
  gate_.leave();
}

bool Client::Impl::callers_may_drive() const {
  return calls_alone_ == enough_alone && calls_.empty() && put_off_.empty() && !closing_;
}

Error Client::Impl::closed_error() const noexcept {
  try {
    if (forked()) {
      return {Errc::closed,
              "this process is the child of a fork: locks and connections belong to its parent; "
              "create a new Client here",
              {}};
    }
    return {Errc::closed, failed() ? failure_.data() : "the client was destroyed", {}};
  } catch (const std::bad_alloc&) {
    return {Errc::closed, "out of memory", {}};  // which a string holds in itself
  }
}

Error Client::Impl::would_deadlock_error() const {
  return {Errc::would_deadlock,
          on_given_loop()
              ? "a client on a loop of the program's own refuses calls that block: use the "
                "async_ function"
              : "a blocking call from the client's own thread (in a callback) would never end: use "
                "the async_ function here, or call from another thread",
          {}};
}

bool Client::Impl::on_loop_thread() noexcept {
  if (forked() || on_given_loop() || !gate_.enter()) return false;
  const bool here = core_->on_loop_thread();
  gate_.leave();
  return here;
}

bool Client::Impl::forked() const noexcept {
  return generation_ != client::process_generation();
}

void Client::Impl::end_for_want_of_memory() noexcept {
  if (!ends_for_want_of_memory_.exchange(true)) static_cast<void>(post(end_for_want_of_memory_));
}

void Client::Impl::report_release_failed(engine::Name name, Error error,
                                         const Lease::State* lease) noexcept {
  if (forked()) return;
  if (!options_.observer) {
    const bool was_told = error.code == Errc::lost && lease != nullptr && lease->was_asked() &&
                          lease->loss_reason().has_value();
    if (options_.warn_on_stderr && !was_told) client::warn_of_release(error);
    return;
  }
  try {
    const auto report = [observer = options_.observer, of = std::move(name),
                         why = std::move(error)] { observer->on_release_failed(*of, why); };
    // If the loop has ended, no other thread calls the observer.
    if (!post(report)) report();
  } catch (...) {
    end_for_want_of_memory();
  }
}

void Client::Impl::report_call_later(const std::string& name, Errc failure) {
  if (!options_.observer) return;
  static_cast<void>(post([this, name, failure] { reporter_.call_ended(name, failure); }));
}

void client::Call::run() {
  client_.begin(*this);
}

void Client::Impl::begin(client::Call& call) {
  // Calls that were accepted before the end are begun: a call that gives a lock back must not be
  // dropped.
  if (closing_) return call.fail(closed_error());
  const bool alone = call.blocking() && calls_.empty();
  calls_alone_ = alone ? std::min(calls_alone_ + 1, enough_alone) : 0;
  const engine::RequestId id = ++last_request_;
  try {
    calls_.add({id, &call});
  } catch (const std::bad_alloc&) {
    call.fail({Errc::closed, "out of memory", {}});
    throw;
  }
  call.ask_engine(BootClock::now(), id);
}

void Client::Impl::cancel(engine::RequestId id) {
  if (calls_.find(id) == nullptr) return;
  core_->engine().cancel(BootClock::now(), id, Errc::cancelled);
}

std::shared_ptr<Lease::State> Client::Impl::add_lease(const engine::AcquireSucceeded& granted) {
  auto state = std::make_shared<Lease::State>(shared_from_this(), granted);
  leases_.add({state});
  return state;
}

void Client::Impl::leave(engine::RequestId id, const client::HeldLocks::Key& key) {
  const engine::GrantId released = core_->engine().leave(BootClock::now(), id, key);
  if (const auto lease = find_lease(released)) lease->end();
  static_cast<void>(forget(released));
}

void Client::Impl::leave_later(const client::HeldLocks::Key& key) noexcept {
  post_or_end([this, key] {
    if (!closing_) leave(0, key);
  });
}

/// Whether the client contends with itself.
client::Rival Client::Impl::rival_for(const std::string& name) const {
  // An index of names would cost memory for every lease, and a search of very many leases costs the
  // loop time.
  constexpr std::size_t few = 256;
  if (leases_.size() > few) return client::Rival::anybody;
  bool ours = false;
  leases_.for_each([&](const KnownLease& known) {
    const Lease::State& lease = *known.lease;
    ours = ours || (lease.name() == name && lease.remaining() > std::chrono::nanoseconds::zero());
  });
  return ours ? client::Rival::this_client : client::Rival::somebody;
}

bool Client::Impl::forget(engine::GrantId grant) {
  KnownLease* const found = leases_.find(grant);
  if (found == nullptr) return false;
  const KnownLease ends =
      leases_.take(*found);  // with the rest of its holder's lease, if no program has it
  return true;
}

std::shared_ptr<Lease::State> Client::Impl::find_lease(engine::GrantId grant) const {
  const KnownLease* const found = leases_.find(grant);
  return found == nullptr ? nullptr : found->lease;
}

void Client::Impl::on_send(const engine::Send& send) {
  tracer_.line([&] { return wire::in_words(send, nodes_); });
}

void Client::Impl::on_reply(engine::NodeIndex node, const engine::Tag& tag,
                            const engine::Reply& reply) {
  tracer_.line([&] { return wire::in_words(BootClock::now(), node, tag, reply, nodes_); });
  reporter_.reply(node, tag, reply);
}

void Client::Impl::on_wake(engine::NodeIndex node, const wire::Wake& wake) {
  tracer_.line([&] { return wire::in_words(node, wake, nodes_); });
}

void Client::Impl::on_node_up(engine::NodeIndex node, std::string_view warning) {
  tracer_.line([&] { return wire::in_words(node, warning, nodes_); });
  reporter_.node_up(node, warning);
}

void Client::Impl::on_node_moved(engine::NodeIndex node, const wire::NodeAddress& address) {
  const std::string before = nodes_[node].label;
  {
    const std::lock_guard lock(nodes_mutex_);
    nodes_[node] = address;
  }
  tracer_.line([&] {
    if (before.empty()) return address.label + " is a new member";
    if (address.label.empty()) return before + " is no member any more";
    return before + " is replaced by " + address.label;
  });
  reporter_.node_moved(before, address.label);
}

void Client::Impl::on_node_down(engine::NodeIndex node, const engine::Unavailable& why) {
  tracer_.line([&] { return wire::in_words(node, why, nodes_); });
  reporter_.node_down(node, why);
}

void Client::Impl::on_output(engine::ClientOutput&& output) {
  tracer_.line([&] { return wire::in_words(BootClock::now(), output, nodes_); });
  // Where callers drive there is no observer, and the only call under way is the caller's own.
  const bool for_loop_thread = caller_drives_ && std::holds_alternative<engine::LeaseLost>(output);
  if (for_loop_thread || !put_off_.empty()) {
    put_off(std::move(output));
  } else {
    perform_output(std::move(output));
  }
}

void Client::Impl::put_off(engine::ClientOutput&& output) {
  if (put_off_.empty()) static_cast<void>(core_->post(resume_outputs_));
  put_off_.push_back(std::move(output));
}

void Client::Impl::ResumeOutputs::run() {
  for (auto& output : std::exchange(client.put_off_, {})) client.perform_output(std::move(output));
}

void Client::Impl::perform_output(engine::ClientOutput&& output) {
  std::visit([this]<typename What>(What&& what) { on(std::forward<What>(what)); },
             std::move(output));
}

void Client::Impl::on(engine::Finish&& output) {
  KnownCall* const found = calls_.find(output.request);
  if (found == nullptr) return final_releases_.on_finish(core_->engine(), output);
  client::Call& call = *found->call;
  assert(call.blocking() || !caller_drives_);
  const auto* const failed = std::get_if<engine::Failed>(&output.result);
  if (failed == nullptr) {
    calls_.take(*found);
    return call.succeed(output.result);
  }
  // The call stays in the table until its error, which takes memory, is made.
  Error error = describe(call.name(), *failed);
  calls_.take(*found);
  call.fail(std::move(error));
}

Error Client::Impl::describe(const std::string& name, const engine::Failed& failed) const {
  // For the engine the lease was released; only the client has the reason, which is its end.
  if (closing_ && failed.code == Errc::lost) return closed_error();
  // Without an attempt there was no rival.
  const auto rival = failed.ballots.empty() ? client::Rival::somebody : rival_for(name);
  return client::describe(name, failed, nodes_, rival);
}

void Client::Impl::on(engine::ValidityChanged&& output) {
  const auto lease = find_lease(output.grant);
  if (!lease) return;
  Lease::State::confirm(lease, output.valid_until, output.loss_deadline);
  // The guard has reported the loss already. The engine must not go on renewing the lease.
  if (const auto reason = lease->loss_reason()) {
    core_->engine().give_up(BootClock::now(), output.grant, *reason);
  }
}

void Client::Impl::on(engine::LeaseLost&& output) {
  const auto lease = find_lease(output.grant);
  if (!lease) return;
  lease->lose(output.reason);
  reporter_.lost(*lease, output.reason);
}

void Client::Impl::on(engine::RenewalDecided&& output) {
  if (!reporter_.has_observer()) return;
  if (const auto lease = find_lease(output.grant)) reporter_.renewed(*lease, output);
}

}  // namespace redlock
