// SPDX-License-Identifier: MIT
// A turn of the loop: whatever happened is put into the engine; then, once, its outputs are
// performed and each link writes what it has collected. libuv's check handle comes right after
// the sockets, the prepare handle right before the loop sleeps: with both, nothing waits.
#include "net/core.hpp"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>
#include <uv.h>

#include "wire/adoption.hpp"
#include "net/boot_timer.hpp"
#include "net/kernel_random.hpp"
#include "wire/key_layout.hpp"
#include "net/link.hpp"
#include "net/loop.hpp"
#include "net/mailbox.hpp"
#include "wire/server_identities.hpp"

namespace redlock::net {

using std::chrono::milliseconds;

namespace {

Link::Config link_config(const CoreConfig& config) {
  const auto patience = std::chrono::ceil<milliseconds>(4 * config.engine.node_timeout);
  return {.terms = {.set = {.nodes = config.nodes.size(), .max_lease = config.max_lease},
                    .client_name = config.client_name,
                    .unfit = config.unfit},
          .timeouts = {.resolve = config.resolve_timeout, .connect = config.connect_timeout},
          .silence = std::max(milliseconds(1'000), patience),
          .probe_interval = config.probe_interval};
}

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

class Core::Impl final : LinkListener {
 public:
  Impl(CoreConfig config, CoreSink& sink)
      : config_(std::move(config)),
        sink_(sink),
        link_config_(link_config(config_)),
        engine_(config_.engine, random_),
        identities_(config_.nodes.size(), config_.max_lease),
        promotions_(config_.nodes.size()),
        note_(wire::random_id(random_)) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    engine_.on_own_clock(BootClock::now(),
                         std::chrono::duration_cast<std::chrono::microseconds>(wall).count());
  }
  ~Impl();

  /// None, or what the system did not give.
  [[nodiscard]] std::optional<std::string> start();
  void join();
  bool post(Task& task);
  [[nodiscard]] bool on_loop_thread() const noexcept { return current == this; }
  [[nodiscard]] engine::Engine& engine() {
    engine_touched_ = true;
    return engine_;
  }
  void wake_by(engine::Instant when) { timer_->expire_by(when); }
  void ask(engine::NodeIndex node, const std::vector<std::string>& command, milliseconds timeout,
           std::function<void(wire::Answer)> callback);

 private:
  struct StopTask final : Task {
    explicit StopTask(Impl& impl) : core(impl) {}
    void run() override { core.stop(); }
    Impl& core;
  };

  template <typename Handle>
  static Impl& of(Handle* handle) {
    return *static_cast<Impl*>(handle->data);
  }

  [[nodiscard]] int open_handles();
  void close_handles();
  void run();
  void stop();
  void turn();
  void perform(engine::Output&& output);
  void tend(const engine::TendMarker& what);
  void tell_marker(engine::NodeIndex node, engine::Marker marker, std::string set = {});

  void on_reply(engine::NodeIndex node, const engine::Tag& tag,
                const engine::Reply& reply) override;
  std::optional<std::string> find_objection(engine::NodeIndex node,
                                            const wire::ServerFacts& facts) override;
  void on_node_facts(engine::NodeIndex node, const wire::ServerFacts& facts) override;
  std::optional<engine::Unavailable> objection_to_ask(engine::NodeIndex node) override {
    return engine_.objection(BootClock::now(), node);
  }
  void on_link_up(engine::NodeIndex node, const wire::ServerFacts& facts) override;
  void on_link_down(engine::NodeIndex node, const engine::Unavailable& why) override;
  void on_clock(engine::Instant now, engine::NodeIndex node, std::int64_t unix_us,
                engine::Duration uncertainty) override;
  void on_output_waiting(Link& link) override { links_to_flush_.push_back(&link); }

  static thread_local const Impl* current;

  const CoreConfig config_;
  CoreSink& sink_;
  const Link::Config link_config_;
  KernelRandom random_;
  engine::Engine engine_;
  wire::ServerIdentities identities_;
  std::vector<std::string> promotions_;  // of servers that were replicas
  std::string note_;                     // this client's, left on nodes without a marker
  std::vector<engine::NodeIndex> look_anew_;
  std::unique_ptr<Loop> loop_ = std::make_unique<Loop>();
  Mailbox mailbox_;
  uv_async_t wake_{};
  uv_check_t after_poll_{};
  uv_prepare_t before_poll_{};
  std::unique_ptr<BootTimer> timer_;
  std::vector<std::unique_ptr<Link>> links_;
  bool engine_touched_ = false;
  std::vector<engine::Output> outputs_;
  std::vector<Link*> links_to_flush_;
  std::vector<Link*> links_being_flushed_;
  StopTask stop_{*this};
  std::thread thread_;
};

thread_local const Core::Impl* Core::Impl::current = nullptr;

int Core::Impl::open_handles() {
  wake_.data = after_poll_.data = before_poll_.data = this;
  const int status =
      uv_async_init(&loop_->uv, &wake_, [](uv_async_t* handle) { of(handle).mailbox_.run_all(); });
  if (status != 0) return status;
  uv_check_init(&loop_->uv, &after_poll_);
  uv_check_start(&after_poll_, [](uv_check_t* handle) { of(handle).turn(); });
  uv_prepare_init(&loop_->uv, &before_poll_);
  uv_prepare_start(&before_poll_, [](uv_prepare_t* handle) { of(handle).turn(); });
  timer_ = BootTimer::create(*loop_, [this] {
    const auto now = BootClock::now();
    if (engine_.deadline() <= now) engine().on_deadline(now);
    sink_.on_time(now);
    engine_touched_ = true;  // also if it was early: the timer is to be set anew
  });
  return timer_ ? 0 : UV_EMFILE;
}

std::optional<std::string> Core::Impl::start() {
  int status = init_loop(loop_->uv);
  if (status != 0) {
    loop_.reset();
    return "cannot make an event loop: " + std::string(uv_strerror(status));
  }
  loop_->uv.data = loop_.get();
  loop_->holder_text = wire::HolderText::of_this_process(config_.label);
  status = open_handles();
  if (status != 0) return "cannot make an event loop: " + std::string(uv_strerror(status));
  for (engine::NodeIndex node = 0; node < config_.nodes.size(); ++node) {
    LinkListener& self = *this;
    links_.push_back(
        std::make_unique<Link>(*loop_, node, config_.nodes[node], link_config_, random_, self));
  }
  // Signals are for the program's own threads; SIGPIPE of our sockets is for nobody.
  const AllSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return "cannot start a thread: " + std::string(error.what());
  }
  return {};
}

void Core::Impl::run() {
  current = this;
  pthread_setname_np(pthread_self(), "redlock");
  for (const auto& link : links_) link->start();
  uv_run(&loop_->uv, UV_RUN_DEFAULT);
}

void Core::Impl::stop() {
  mailbox_.close();
  turn();
  for (const auto& link : links_) link->stop();
  uv_stop(&loop_->uv);
}

void Core::Impl::join() {
  if (!thread_.joinable()) return;
  post(stop_);
  thread_.join();
}

Core::Impl::~Impl() {
  join();
  if (!loop_) return;
  links_.clear();
  timer_.reset();
  close_handles();
  const int status = uv_loop_close(&loop_->uv);
  assert(status == 0);
  static_cast<void>(status);
}

void Core::Impl::close_handles() {
  for (auto* handle :
       {reinterpret_cast<uv_handle_t*>(&wake_), reinterpret_cast<uv_handle_t*>(&after_poll_),
        reinterpret_cast<uv_handle_t*>(&before_poll_)}) {
    if (handle->loop != nullptr) uv_close(handle, nullptr);
  }
  while (uv_run(&loop_->uv, UV_RUN_NOWAIT) != 0) {
  }
}

bool Core::Impl::post(Task& task) {
  const Mailbox::Posted posted = mailbox_.push(task);
  if (posted == Mailbox::Posted::first) uv_async_send(&wake_);
  return posted != Mailbox::Posted::refused;
}

void Core::Impl::ask(engine::NodeIndex node, const std::vector<std::string>& command,
                     milliseconds timeout, std::function<void(wire::Answer)> callback) {
  links_[node]->ask(std::make_shared<Question>(*loop_, command, timeout, std::move(callback)));
}

void Core::Impl::turn() {
  for (const engine::NodeIndex node : std::exchange(look_anew_, {})) links_[node]->look_anew();
  while (engine_touched_ || !links_to_flush_.empty()) {
    while (std::exchange(engine_touched_, false)) {
      engine_.take_outputs(outputs_);
      for (engine::Output& output : outputs_) perform(std::move(output));
      outputs_.clear();
      timer_->expire_by(engine_.deadline());
    }
    // A link that cannot write answers what it had, and the engine has something to say to that.
    links_being_flushed_.swap(links_to_flush_);
    for (Link* link : links_being_flushed_) link->flush();
    links_being_flushed_.clear();
  }
}

void Core::Impl::perform(engine::Output&& output) {
  if (auto* send = std::get_if<engine::Send>(&output)) {
    links_[send->node]->submit(send->tag, std::move(send->command), send->form);
  } else if (const auto* what = std::get_if<engine::TendMarker>(&output)) {
    tend(*what);
  } else {
    const auto* moved = std::get_if<engine::NodeClockMoved>(&output);
    if (moved != nullptr && moved->ask_all) {
      for (const auto& link : links_) link->probe();
    }
    sink_.on_output(std::move(output));
  }
}

/// What somebody else wrote is judged by a new handshake.
void Core::Impl::tend(const engine::TendMarker& what) {
  const engine::NodeIndex node = what.node;
  const std::string& run = promotions_[node];
  const wire::SetTerms& set = link_config_.terms.set;
  const auto timeout = std::chrono::ceil<milliseconds>(config_.engine.node_timeout);
  if (!config_.engine.quarantine) {
    return ask(node, wire::look_command(), timeout, [=, this](wire::Answer answer) {
      if (wire::found_any(answer)) tell_marker(node, engine::Marker::there);
    });
  }
  if (!what.write) {
    return ask(node, wire::note_command(note_, set), timeout, [=, this](wire::Answer answer) {
      if (wire::has_forgotten_since(answer)) return tell_marker(node, engine::Marker::gone_anew);
      const bool there = !wire::marker_field(answer, "layout").empty();
      if (there && (run.empty() || wire::marker_field(answer, "vouched") == run)) {
        look_anew_.push_back(node);
      }
    });
  }
  const auto command = wire::adoption_command(random_, set, what.set, run, note_);
  ask(node, command, timeout, [=, this, name = what.set](wire::Answer answer) {
    if (wire::was_adopted(answer)) {
      links_[node]->joined(name);
      return tell_marker(node, engine::Marker::there, name);
    }
    if (wire::has_forgotten_since(answer)) return tell_marker(node, engine::Marker::gone_anew);
    if (!wire::marker_field(answer, "layout").empty()) look_anew_.push_back(node);
  });
}

void Core::Impl::tell_marker(engine::NodeIndex node, engine::Marker marker, std::string set) {
  engine().on_marker(BootClock::now(), node, marker, std::move(set));
}

void Core::Impl::on_reply(engine::NodeIndex node, const engine::Tag& tag,
                          const engine::Reply& reply) {
  engine().on_reply(BootClock::now(), node, tag, reply);
}

std::optional<std::string> Core::Impl::find_objection(engine::NodeIndex node,
                                                      const wire::ServerFacts& facts) {
  const auto twin = identities_.find_twin(BootClock::now(), node, facts.run_id);
  if (!twin) return {};
  return "it is the same server as " + config_.nodes[*twin].label +
         "; list each server once, by one address";
}

void Core::Impl::on_node_facts(engine::NodeIndex node, const wire::ServerFacts& facts) {
  const bool promoted = facts.was_replica && facts.vouched != facts.promotion;
  const std::string before =
      std::exchange(promotions_[node], promoted ? facts.promotion : std::string());
  engine().on_node_facts(BootClock::now(), node,
                         {.marker = facts.marker,
                          .durable = facts.durable.value_or(false),
                          .promoted = promoted,
                          .uptime = facts.uptime,
                          .run = facts.run_id,
                          .set = facts.set});
  // While it waited for the first time it may have lost the newest locks once more.
  const bool once_more = promoted && !before.empty() && before != facts.promotion;
  if (once_more) tell_marker(node, engine::Marker::gone_anew);
}

void Core::Impl::on_link_up(engine::NodeIndex node, const wire::ServerFacts& facts) {
  identities_.set_up(BootClock::now(), node, true);
  engine().on_node_up(BootClock::now(), node);
  wire::ServerFacts shown = facts;
  if (const auto why = engine_.objection(BootClock::now(), node)) shown.warn(why->detail);
  sink_.on_node_up(node, shown.warnings);
}

void Core::Impl::on_link_down(engine::NodeIndex node, const engine::Unavailable& why) {
  identities_.set_up(BootClock::now(), node, false);
  sink_.on_node_down(node, why);
}

void Core::Impl::on_clock(engine::Instant now, engine::NodeIndex node, std::int64_t unix_us,
                          engine::Duration uncertainty) {
  engine().on_node_clock(now, node, unix_us, uncertainty);
}

tl::expected<std::unique_ptr<Core>, std::string> Core::start(CoreConfig config, CoreSink& sink) {
  auto impl = std::make_unique<Impl>(std::move(config), sink);
  if (auto problem = impl->start()) return tl::unexpected(std::move(*problem));
  return std::unique_ptr<Core>(new Core(std::move(impl)));
}

Core::Core(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Core::~Core() = default;
void Core::stop() {
  impl_->join();
}
bool Core::post(Task& task) {
  return impl_->post(task);
}
bool Core::on_loop_thread() const noexcept {
  return impl_->on_loop_thread();
}
engine::Engine& Core::engine() {
  return impl_->engine();
}
void Core::wake_by(engine::Instant when) {
  impl_->wake_by(when);
}
void Core::ask(engine::NodeIndex node, const std::vector<std::string>& command,
               milliseconds timeout, std::function<void(wire::Answer)> callback) {
  impl_->ask(node, command, timeout, std::move(callback));
}

}  // namespace redlock::net
