// SPDX-License-Identifier: MIT
// A running core, as tests see it: tasks are run on its loop and waited for, and what the core says
// is kept until somebody asks.
#pragma once

#include <filesystem>

#include "integration/net_common.hpp"
#include "net/core.hpp"

namespace redlock::net {

template <typename Work>
class FunctionTask final : public Task {
 public:
  explicit FunctionTask(Work work) : work_(std::move(work)) {}
  void run() override { work_(); }

 private:
  Work work_;
};

class Recorder final : public DriverHost {
 public:
  void on_output(engine::ClientOutput&& output) override {
    const std::scoped_lock lock(mutex_);
    if (auto* finish = std::get_if<engine::Finish>(&output)) {
      finished_.emplace(finish->request, std::move(*finish));
    }
    happened_.notify_all();
  }
  void on_node_up(engine::NodeIndex node, std::string_view warning) override {
    const std::scoped_lock lock(mutex_);
    up_[node] = warning;
    happened_.notify_all();
  }
  void on_node_down(engine::NodeIndex node, const engine::Unavailable& why) override {
    const std::scoped_lock lock(mutex_);
    down_[node] = why;
    happened_.notify_all();
  }

  engine::Finish await_finish(engine::RequestId request) {
    await([&] { return finished_.contains(request); });
    const std::scoped_lock lock(mutex_);
    return finished_.at(request);
  }
  std::string await_up(engine::NodeIndex node) {
    await([&] { return up_.contains(node); });
    const std::scoped_lock lock(mutex_);
    return up_.at(node);
  }
  bool is_up(engine::NodeIndex node) {
    const std::scoped_lock lock(mutex_);
    return up_.contains(node);
  }
  /// So that the next time can be awaited.
  void forget_up(engine::NodeIndex node) {
    const std::scoped_lock lock(mutex_);
    up_.erase(node);
  }
  /// Empty if it never was.
  std::string why_down(engine::NodeIndex node) {
    const std::scoped_lock lock(mutex_);
    return down_.contains(node) ? down_.at(node).detail : std::string();
  }
  engine::Unavailable await_down(engine::NodeIndex node) {
    await([&] { return down_.contains(node); });
    const std::scoped_lock lock(mutex_);
    return down_.at(node);
  }

 private:
  void await(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    REQUIRE(happened_.wait_for(lock, std::chrono::minutes(5), condition));
  }

  std::mutex mutex_;
  std::condition_variable happened_;
  std::map<engine::RequestId, engine::Finish> finished_;
  std::map<engine::NodeIndex, std::string> up_;
  std::map<engine::NodeIndex, engine::Unavailable> down_;
};

inline std::set<int> open_descriptors() {
  std::set<int> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    descriptors.insert(std::stoi(entry.path().filename()));
  }
  return descriptors;
}

struct Running {
  explicit Running(const std::vector<std::string>& uris) : Running(config_for(uris)) {}
  // Attempts have long: the machine may be busy.
  explicit Running(CoreConfig config, milliseconds node_timeout = std::chrono::seconds(10)) {
    config.engine.node_timeout = node_timeout;
    core = std::move(Core::start(std::move(config), sink).value());
  }
  static CoreConfig config_for(const std::vector<std::string>& uris) {
    CoreConfig config;
    config.connect_timeout = std::chrono::seconds(10);
    for (const std::string& uri : uris) config.nodes.push_back(*parse_node_uri(uri));
    config.engine.nodes = static_cast<std::uint32_t>(uris.size());
    return config;
  }
  template <typename Work>
  void on_loop(Work work) {
    std::promise<void> done;
    FunctionTask task([&] {
      work();
      done.set_value();
    });
    REQUIRE(core->post(task));
    done.get_future().wait();
  }
  engine::Finish acquire(engine::RequestId request, const std::string& name) {
    on_loop([&] {
      core->engine().acquire(BootClock::now(), request,
                             {.name = std::make_shared<const std::string>(name),
                              .lease = milliseconds(30'000),
                              .max_hold = {}});
    });
    return sink.await_finish(request);
  }
  engine::Finish release(engine::RequestId request, engine::GrantId grant) {
    on_loop([&] { core->engine().release(BootClock::now(), request, grant); });
    return sink.await_finish(request);
  }
  std::future<Answer> ask(engine::NodeIndex node, std::vector<std::string> command,
                          milliseconds timeout = std::chrono::seconds(20)) {
    auto answer = std::make_shared<std::promise<Answer>>();
    on_loop([&] {
      core->ask(node, command, timeout,
                [answer](engine::Instant, Answer what) { answer->set_value(what); });
    });
    return answer->get_future();
  }

  Recorder sink;
  std::unique_ptr<Core> core;
};

inline engine::AcquireSucceeded granted(const engine::Finish& finish) {
  const auto* granted = std::get_if<engine::AcquireSucceeded>(&finish.result);
  REQUIRE(granted != nullptr);
  return *granted;
}

}  // namespace redlock::net
