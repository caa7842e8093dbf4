// SPDX-License-Identifier: MIT
// One node twice: the model, and a redis-server with the real scripts. What is done to one is done
// to the other; after each step both must have said the same and hold the same. The model's clock
// stands still and moves only when the server itself has said that a lease is over. So a lease has
// never more time left on the server than in the model, and less by no more than really went by.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "cluster/fleet.hpp"
#include "engine/messages.hpp"
#include "engine/stripe.hpp"
#include "simulation/node_model.hpp"
#include "simulation/server_connection.hpp"
#include "simulation/words.hpp"
#include "support/text.hpp"
#include "wire/key_layout.hpp"

namespace redlock::simulation {

class SideBySide {
 public:
  using Form = engine::Form;

  /// A name, and an owner by number.
  struct Who {
    std::string name;
    std::uint64_t owner = 1;
  };

  /// The model and the server are two.
  struct Difference : std::runtime_error {
    using runtime_error::runtime_error;
  };

  /// Without keys, with all scripts. The fleet's only node, and nobody else uses it.
  explicit SideBySide(cluster::Fleet& fleet)
      : fleet_(fleet), client_(fleet.port(0)), connection_(fleet.port(0)) {
    heal_server();
    server({"FLUSHALL"});
    server({"SCRIPT", "FLUSH", "SYNC"});
    wire::ScriptSet& scripts = connection_.scripts();
    for (const wire::ScriptRow& row : wire::script_rows()) {
      scripts.set_digest(row.script, server({"SCRIPT", "LOAD", scripts.source(row.script)}));
    }
    model_.load_scripts();
    began_ = std::chrono::steady_clock::now();
  }
  ~SideBySide() {
    try {
      heal_server();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next one will say so
    }
  }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  // What both said.
  engine::Reply acquire(const Who& who, std::int64_t lease_ms = 60'000, engine::Token floor = 1,
                        Form form = Form::digest) {
    note("acquire", who, form, fmt::format("lease {} floor {}", lease_ms, floor));
    return execute(engine::AcquireCommand{.name = shared(who),
                                          .owner = owner(who),
                                          .lease = std::chrono::milliseconds(lease_ms),
                                          .floor = floor},
                   form);
  }
  engine::Reply hold(const Who& who, engine::Token token, std::int64_t lease_ms = 60'000,
                     std::uint32_t count = 1, Form form = Form::digest) {
    note("hold", who, form, fmt::format("token {} lease {} count {}", token, lease_ms, count));
    return execute(engine::HoldCommand{.name = shared(who),
                                       .owner = owner(who),
                                       .lease = std::chrono::milliseconds(lease_ms),
                                       .count = count,
                                       .token = token},
                   form);
  }
  engine::Reply release(const Who& who, Form form = Form::digest) {
    note("release", who, form, "");
    return execute(engine::ReleaseCommand{.name = shared(who), .owner = owner(who)}, form);
  }

  engine::Reply force(const Who& who, std::int64_t keep_out_ms = 60'000, Form form = Form::digest) {
    note("force", who, form, fmt::format("keep out {}", keep_out_ms));
    return execute(engine::ForceCommand{.name = shared(who),
                                        .owner = owner(who),
                                        .keep_out = std::chrono::milliseconds(keep_out_ms)},
                   form);
  }

  /// Takes a free lock, asks the server until the lease is over there, then lets it be over in the
  /// model too. In between nothing can be compared: nobody knows when the server's time is up.
  engine::Reply acquire_and_outlive(const Who& who, std::int64_t lease_ms) {
    note(fmt::format("acquire {} for {} lease {}, and let it end", who.name, who.owner, lease_ms));
    const engine::AcquireCommand command{.name = shared(who),
                                         .owner = owner(who),
                                         .lease = std::chrono::milliseconds(lease_ms),
                                         .floor = 1};
    engine::Reply said = say(command, Form::source);
    if (!std::holds_alternative<engine::Granted>(said)) return said;
    until([&] { return server({"EXISTS", wire::redlock_layout.lock(who.name)}) == "0"; });
    now_ms_ += lease_ms + 1;
    compare_state(who.name);
    return said;
  }

  /// Turns somebody away, and lets the time for that be over in the same way.
  void force_and_outlive(const Who& who, std::int64_t keep_out_ms) {
    note(fmt::format("force {} for {} for {}, and let it end", who.name, who.owner, keep_out_ms));
    const engine::ForceCommand command{.name = shared(who),
                                       .owner = owner(who),
                                       .keep_out = std::chrono::milliseconds(keep_out_ms)};
    say(command, Form::source);
    until([&] { return server({"EXISTS", wire::redlock_layout.forced(who.name)}) == "0"; });
    now_ms_ += keep_out_ms + 1;
    compare_state(who.name);
  }

  void flush_scripts() {
    note("SCRIPT FLUSH");
    model_.forget_scripts();
    server({"SCRIPT", "FLUSH", "SYNC"});
  }
  void flush_all() {
    note("FLUSHALL");
    model_.forget_everything();
    server({"FLUSHALL"});
  }
  void put_foreign(const std::string& name) {
    note("a string where the lock would be: " + name);
    model_.put_foreign(name);
    server({"SET", wire::redlock_layout.lock(name), "somebody's"});
  }
  /// By somebody's hand: the lock has no end any more.
  void persist(const std::string& name) {
    note("PERSIST " + name);
    model_.persist(name);
    server({"PERSIST", wire::redlock_layout.lock(name)});
  }
  void put_fence(const std::string& name, engine::Token value) {
    note(fmt::format("fence of {}: {}", name, value));
    model_.set_fence(engine::stripe_of(name), value);
    server({"SET", wire::redlock_layout.fence(name), std::to_string(value)});
  }
  void damage_fence(const std::string& name) {
    note("no number as fence of " + name);
    model_.set_fence(engine::stripe_of(name), NodeModel::Damaged{});
    server({"SET", wire::redlock_layout.fence(name), "abc"});
  }
  void put_foreign_fence(const std::string& name) {
    note("a list as fence of " + name);
    model_.set_fence(engine::stripe_of(name), NodeModel::WrongType{});
    server({"DEL", wire::redlock_layout.fence(name)});
    server({"RPUSH", wire::redlock_layout.fence(name), "x"});
  }
  void lose_fence(const std::string& name) {
    note("DEL of the fence of " + name);
    model_.lose_fence(engine::stripe_of(name));
    server({"DEL", wire::redlock_layout.fence(name)});
  }

  void fall_full() {
    fall(Ailment::full, "maxmemory 1");
    server({"CONFIG", "SET", "maxmemory", "1"});
  }
  void fall_read_only() {
    fall(Ailment::read_only, "REPLICAOF");
    server({"REPLICAOF", "127.0.0.1", std::to_string(nobody().number())});
  }
  /// A snapshot fails, because a directory stands in its place.
  void fall_misconf() {
    fall(Ailment::misconf, "a snapshot fails");
    std::filesystem::create_directories(snapshot() / "in the way");
    server({"CONFIG", "SET", "save", "86400 1000000"});
    server({"BGSAVE"});
    until([&] {
      return testing::contains(server({"INFO", "persistence"}), "rdb_last_bgsave_status:err");
    });
  }
  /// A script of somebody's does not end.
  void fall_busy() {
    fall(Ailment::busy, "an endless script");
    server({"CONFIG", "SET", "busy-reply-threshold", "1"});
    occupier_ = std::make_unique<ServerConnection>(fleet_.port(0));
    occupier_->send("*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n");
    until([&] { return testing::contains(ask({"PING"}), "BUSY"); });
  }
  void recover() {
    note("well again");
    model_.set_ailment(Ailment::none);
    heal_server();
  }

  [[nodiscard]] const NodeModel& model() const { return model_; }
  [[nodiscard]] std::int64_t now_ms() const { return now_ms_; }

 private:
  static engine::OwnerId owner(const Who& who) { return {{0x5eed, who.owner}}; }
  static engine::Name shared(const Who& who) {
    return std::make_shared<const std::string>(who.name);
  }
  /// A port on which no primary answers.
  static const cluster::FreePort& nobody() {
    static const cluster::FreePort port = cluster::FreePort::pick();
    return port;
  }
  [[nodiscard]] std::filesystem::path snapshot() const {
    const std::string directory = client_.command({"CONFIG", "GET", "dir"});
    return std::filesystem::path(directory.substr(directory.find('\n') + 1)) / "dump.rdb";
  }

  [[nodiscard]] std::string ask(const std::vector<std::string>& command) const {
    return client_.command(command);
  }
  std::string server(const std::vector<std::string>& command) const {
    const std::string answer = ask(command);
    if (testing::contains(answer, "(error)") && !testing::contains(answer, "WRONGTYPE")) {
      throw Difference("the server refused " + command[0] + ": " + answer + story());
    }
    return answer;
  }

  /// Asks again and again; a server that has not come there in half a minute will not.
  template <typename Done>
  void until(const Done& done) const {
    const std::int64_t latest = elapsed_ms() + 30'000;
    while (!done()) {
      if (elapsed_ms() > latest) throw Difference("the server does not get there" + story());
    }
  }
  void fall(Ailment ailment, const std::string& step) {
    note(step);
    model_.set_ailment(ailment);
  }
  void heal_server() {
    if (occupier_) {
      server({"SCRIPT", "KILL"});
      until([&] { return !testing::contains(ask({"PING"}), "BUSY"); });
      occupier_.reset();
    }
    server({"CONFIG", "SET", "maxmemory", "0", "save", ""});
    server({"REPLICAOF", "NO", "ONE"});
    std::filesystem::remove_all(snapshot());
  }

  engine::Reply execute(const engine::Command& command, Form form) {
    engine::Reply said = say(command, form);
    if (model_.ailment() != Ailment::busy) {
      std::visit([this](const auto& what) { compare_state(*what.name); }, command);
    }
    return said;
  }

  engine::Reply say(const engine::Command& command, Form form) {
    engine::Reply said = model_.execute(command, form, now_ms_);
    const engine::Reply answered = connection_.execute(command, form);
    trace_ += " -> " + in_words(said);
    compare_replies(said, answered);
    return said;
  }

  void compare_replies(const engine::Reply& said, const engine::Reply& answered) const {
    if (said.index() != answered.index()) differ("reply", in_words(said), in_words(answered));
    if (const auto* why = std::get_if<engine::Unavailable>(&said)) {
      const auto& cause = std::get<engine::Unavailable>(answered);
      if (why->cause != cause.cause || why->delivery != cause.delivery ||
          !testing::contains(cause.detail, why->detail)) {
        differ("error", in_words(said), in_words(answered));
      }
      return;
    }
    const auto* refused = std::get_if<engine::Refused>(&said);
    if (refused == nullptr || !refused->expires_in) {
      if (in_words(said) != in_words(answered)) {
        differ("reply", in_words(said), in_words(answered));
      }
      return;
    }
    const auto& expires_in = std::get<engine::Refused>(answered).expires_in;
    compare_left(refused->expires_in->count(), expires_in ? expires_in->count() : -1);
  }

  void compare_state(const std::string& name) const {
    compare_lock(name);
    compare_forced(name);
    const std::string fence = server({"GET", wire::redlock_layout.fence(name)});
    const bool counter = fence.find_first_not_of("0123456789") == std::string::npos;
    const std::string expected = std::to_string(model_.fence(engine::stripe_of(name)));
    if (expected != (counter ? fence : "0")) differ("fence of " + name, expected, fence);
  }

  void compare_lock(const std::string& name) const {
    const std::string key = wire::redlock_layout.lock(name);
    const NodeModel::Lock* lock = model_.find(name, now_ms_);
    const std::string expected =
        lock == nullptr ? "none" : (lock->foreign_type ? "string" : "hash");
    const std::string type = server({"TYPE", key});
    if (type != expected) differ("lock " + name, expected, type);
    if (type != "hash") return;
    const std::string fields = engine::to_hex(lock->owner) + "\n" + std::to_string(lock->count);
    const std::string found = server({"HGETALL", key});
    if (fields != found) differ("lock " + name, fields, found);
    const std::int64_t left = std::stoll(server({"PTTL", key}));
    compare_left(lock->ends_ms ? *lock->ends_ms - now_ms_ : -1, left);
  }

  void compare_forced(const std::string& name) const {
    const std::string key = wire::redlock_layout.forced(name);
    const NodeModel::ForcedOwners* forced = model_.find_forced(name, now_ms_);
    std::string expected;
    if (forced != nullptr) {
      for (const engine::OwnerId& each : forced->owners) {
        expected += (expected.empty() ? "" : "\n") + engine::to_hex(each);
      }
    }
    if (forced == nullptr) expected = "(empty array)";
    const std::string found = server({"HKEYS", key});
    if (expected != found) differ("forced out of " + name, expected, found);
    if (forced == nullptr) return;
    compare_left(forced->ends_ms - now_ms_, std::stoll(server({"PTTL", key})));
  }

  /// The server's time went on, the model's did not: less is left there, by that much at most. Two
  /// milliseconds more, because both are whole ones and a clock may be slewed meanwhile.
  void compare_left(std::int64_t said, std::int64_t answered) const {
    if (said == -1 && answered == -1) return;
    const std::int64_t went_by = elapsed_ms() - now_ms_ + 2;
    if (said == -1 || answered == -1 || answered > said || said - answered > went_by) {
      differ(fmt::format("time left ({} ms went by)", went_by), std::to_string(said),
             std::to_string(answered));
    }
  }

  [[nodiscard]] std::int64_t elapsed_ms() const {
    const auto elapsed = std::chrono::steady_clock::now() - began_;
    return std::chrono::ceil<std::chrono::milliseconds>(elapsed).count();
  }

  void note(const std::string& step) { trace_ += "\n  " + step; }
  void note(const char* what, const Who& who, Form form, const std::string& arguments) {
    note(fmt::format("{} {} for {}{} {}", what, who.name, who.owner,
                     form == Form::source ? " in full" : "", arguments));
  }
  [[nodiscard]] std::string story() const { return "\nafter" + trace_; }
  [[noreturn]] void differ(const std::string& what, const std::string& model,
                           const std::string& server) const {
    throw Difference(what + "\nmodel:  " + model + "\nserver: " + server + story());
  }

  cluster::Fleet& fleet_;
  mutable cluster::NodeClient client_;
  ServerConnection connection_;
  std::unique_ptr<ServerConnection> occupier_;  // its script keeps the server busy
  NodeModel model_;
  std::int64_t now_ms_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::string trace_;
};

}  // namespace redlock::simulation
