// SPDX-License-Identifier: MIT
#include "soak/worker.hpp"

#include <set>
#include <unistd.h>

namespace redlock::soak {
namespace {

/// Writes down what the library tells a worker.
class Scribe final : public Observer {
 public:
  Scribe(Board& board, std::size_t worker) : board_(board), worker_(worker) {}

  void on_attempt(std::string_view, const Errc*, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    const auto began = (BootClock::now() - elapsed).time_since_epoch().count();
    for (std::size_t node = 0; node < votes.size(); ++node) {
      if (votes[node].vote == Vote::unavailable) continue;
      // No answer yet: it was asked, which a node in quarantine is not; or there is no connection,
      // and it is not known whether it will be.
      const bool asked = up_.contains(votes[node].node);
      if (votes[node].vote != Vote::pending || asked) board_.voted[worker_][node] = began;
    }
  }
  void on_node_up(std::string_view node, std::string_view) override { up_.emplace(node); }
  void on_node_down(std::string_view node, Cause, std::string_view) override {
    up_.erase(std::string(node));
  }
  void on_renewal(std::string_view, bool ok, std::chrono::nanoseconds) override {
    ++(ok ? board_.renewals : board_.failed_renewals);
  }
  void on_lost(std::string_view name, std::uint64_t, LossReason reason) override {
    ++board_.lost;
    fmt::print(stderr, "worker {} lost {}: {}\n", worker_, name, to_string(reason));
  }

 private:
  Board& board_;
  const std::size_t worker_;
  std::set<std::string> up_;
};

}  // namespace

Client Worker::start(ClientOptions options) {
  node_timeout_ = options.node_timeout;
  options.retry_min = 5ms;
  options.retry_max = 20ms;
  options.retry_cap = 50ms;
  options.observer = std::make_shared<Scribe>(board_, number_);
  return start_client(std::move(options));
}

void Worker::run(ClientOptions options) {
  const Client client = start(std::move(options));
  while (!board_.ended) take_one(client);
}

void Worker::keep(ClientOptions options) {
  const Client client = start(std::move(options));
  auto lease = client.lock(fmt::format("rivals:{}", kept_name)).acquire({.wait = forever});
  if (!lease) throw std::runtime_error(lease.error().message);
  ++board_.ready;
  hold(client, *lease, kept_name, std::chrono::hours(24));
  release(*lease);
}

void Worker::take_one(const Client& client) {
  // A few calls see whether the kept name is free after all.
  const bool brief = random_.below(50) == 0;
  const std::size_t name = brief ? kept_name : random_.below(rival_names);
  const auto asked = BootClock::now();
  const auto deadline = asked + (brief ? 20ms : longest_rival_wait);
  const Call acquiring = call_until(deadline);
  auto lease =
      client.lock(fmt::format("rivals:{}", name)).acquire({.wait = forever, .deadline = deadline});
  acquiring.judge();
  if (!lease) {
    if (!brief) board_.count(lease.error());
    return;
  }
  raise(board_.longest_wait_ms, std::int64_t{(BootClock::now() - asked) / 1ms});
  // Mostly for a moment; one in twenty through several renewals, and perhaps a fault.
  hold(client, *lease, name,
       random_.below(20) > 0 ? 1ms + random_.below(10ms) : 500ms + random_.below(4s));
  release(*lease);
}

void Worker::hold(const Client& client, const Lease& lease, std::size_t name, milliseconds length) {
  RedLock own = client.lock(fmt::format("rivals:own:{}", ::getpid()));
  const auto from = BootClock::now();
  if (!lease.valid()) return;
  Hold* const written = board_.open({name, from, from, lease.token()});
  for (auto now = from; lease.valid(); now = BootClock::now()) {
    if (written != nullptr) written->to = now;
    if (now - from >= length || board_.ended) break;
    std::this_thread::sleep_for(std::min<BootClock::duration>(20ms, length - (now - from)));
    take_own(own);
  }
}

void Worker::release(Lease& lease) {
  const Call releasing = call_until(BootClock::now() + node_timeout_);
  const auto released = lease.release();
  releasing.judge();
  if (released && *released == Released::already_gone) ++board_.lost;
}

/// Shows who votes, and how long it takes: nobody else wants it.
void Worker::take_own(RedLock& own) {
  const bool changing = board_.changing;
  const auto asked = BootClock::now();
  const Call acquiring = call_until(asked + longest_rival_wait);
  auto lease = own.acquire({.wait = forever, .deadline = asked + longest_rival_wait});
  const auto took = BootClock::now() - asked;
  acquiring.judge();
  if (!lease) return board_.count(lease.error());
  (changing || board_.changing ? board_.in_changes : board_.usual).note(took);
}

}  // namespace redlock::soak
