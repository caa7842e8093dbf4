// SPDX-License-Identifier: MIT
#include "seat_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "net/loop_seat.hpp"

namespace testing {

namespace {

constexpr std::size_t most_callers = 2;

enum class Answer : std::uint8_t { not_asked, posted, under_way, readable, given };

/// Everything that threads and the system share.
struct Shared {
  std::uint32_t word = 2;
  bool armed = false;
  bool bell = false;
  bool bell_found = false;  // by the loop thread, which has not polled since
  bool alarm_runs = false;
  bool alarm_rang = false;
  bool loop_thread_sleeps = false;  // on the word
  std::uint8_t tasks = 0;           // in the mailbox, without calls
  std::uint8_t tasks_run = 0;
  std::uint8_t events_to_come = 0;
  std::uint8_t events = 0;   // readable
  std::uint8_t watches = 1;  // 1: an event makes the loop watch another descriptor
  bool to_register = false;  // which is registered by the next poll, and then has an event
  // How often more the alarm goes off while others still have something to do: if always at once,
  // who leaves would set it again and again.
  std::uint8_t early_alarms = 1;
  std::uint8_t driver = 0;  // 0: the loop thread or nobody, or a caller's number + 1
  std::array<Answer, most_callers> calls{};
  std::array<std::uint8_t, most_callers> answered{};  // how many of a caller's
  std::array<std::uint8_t, 2> fills_up{};             // so that its bytes are its state

  [[nodiscard]] bool mailbox_empty() const {
    return tasks == 0 && std::ranges::count(calls, Answer::posted) == 0;
  }
  [[nodiscard]] bool call_under_way() const {
    return std::ranges::count(calls, Answer::under_way) +
               std::ranges::count(calls, Answer::readable) >
           0;
  }
  [[nodiscard]] bool readable() const {
    return events > 0 || std::ranges::count(calls, Answer::readable) > 0;
  }
  [[nodiscard]] bool polling_would_return() const { return readable() || bell || to_register; }
  void read() {
    std::ranges::replace(calls, Answer::readable, Answer::given);
    if (std::exchange(to_register, false))
      ++events;
    else if (events > 0) {
      events = 0;
      to_register = std::exchange(watches, 0) != 0;
    }
  }
  void run_tasks() {
    std::ranges::replace(calls, Answer::posted, Answer::under_way);
    tasks_run = static_cast<std::uint8_t>(tasks_run + std::exchange(tasks, 0));
  }
};

using Results = std::vector<std::uint32_t>;

struct State {
  Shared shared;
  std::vector<Results> threads;  // the loop thread, the callers, the poster
  std::vector<bool> ended;

  [[nodiscard]] std::string key() const {
    static_assert(std::has_unique_object_representations_v<Shared>, "no padding");
    std::string key(reinterpret_cast<const char*>(&shared), sizeof shared);
    const auto add = [&key](std::uint32_t value) {
      key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    for (const Results& results : threads) {
      add(static_cast<std::uint32_t>(results.size()));
      for (const std::uint32_t result : results) add(result);
    }
    for (const bool end : ended) add(end ? 1 : 0);
    return key;
  }
};

struct StepDone {};
struct Blocked {};
struct BackAtTop {};
struct Broken {
  std::string problem;
};

/// The system for one thread, which does one step more than it has results for. Also what LoopSeat
/// calls its kernel.
class Steps {
 public:
  Steps(Shared& shared, Results& results, SeatBug bug)
      : shared_(shared), results_(results), bug_(bug) {}

  using Effect = std::function<std::uint32_t(Shared&)>;
  static bool always(const Shared&) { return true; }

  template <typename Enabled>
  std::uint32_t step(Enabled&& enabled, const Effect& effect) {
    if (next_ < results_.size()) return results_[next_++];
    if (!enabled(std::as_const(shared_))) throw Blocked{};
    results_.push_back(effect(shared_));
    throw StepDone{};
  }
  std::uint32_t step(const Effect& effect) { return step(always, effect); }

  // LoopSeat's kernel.
  struct SeatEvent {
    bool bell = false;
    bool alarm = false;
  };
  std::uint32_t load() {
    // Each loop of LoopSeat begins with the word and remembers nothing else, so that what it did in
    // earlier rounds is no part of its state.
    if (!std::exchange(slept_, false)) loop_ = next_;
    restart_at(loop_);
    return step([](Shared& s) { return s.word; });
  }
  bool exchange_if(std::uint32_t& expected, std::uint32_t desired) {
    constexpr std::uint32_t alarm = 8;
    if (bug_ == SeatBug::alarm_set_before_bit && desired == (expected | alarm) &&
        expected != desired && (expected & 3) == 1) {
      start_alarm();
    }
    if (bug_ == SeatBug::seat_not_exclusive) {
      const std::uint32_t found = load();
      if (found != expected) {
        expected = found;
        return false;
      }
      step([=](Shared& s) { return s.word = desired; });
      return true;
    }
    if (next_ == results_.size() && shared_.word != expected) {
      // As if the loop had just begun.
      results_.resize(loop_);
      results_.push_back(shared_.word);
      throw StepDone{};
    }
    step([=](Shared& s) { return s.word = desired; });
    return true;
  }
  void arm() {
    if (bug_ == SeatBug::never_armed) return;
    step([](Shared& s) { return s.armed = true, 0U; });
  }
  void disarm() {
    step([](Shared& s) { return s.armed = false, 0U; });
  }
  void set_alarm() {
    if (bug_ == SeatBug::alarm_never_set || bug_ == SeatBug::alarm_set_before_bit) return;
    start_alarm();
  }
  SeatEvent await_event() {
    if (!waiting_) waiting_ = next_;
    restart_at(*waiting_);
    const std::uint32_t found =
        step([](const Shared& s) { return s.bell || s.alarm_rang || (s.armed && s.readable()); },
             [](Shared& s) {
               const std::uint32_t alarm = std::exchange(s.alarm_rang, false) ? 2 : 0;
               if (s.readable()) s.armed = false;
               if (s.bell && std::exchange(s.bell_found, true)) throw Broken{"a thread spins"};
               return alarm | (s.bell ? 1U : 0U);
             });
    return {(found & 1) != 0 && bug_ != SeatBug::bell_only_a_hint,
            (found & 2) != 0 && bug_ != SeatBug::alarm_bit_never_cleared};
  }
  void sleep(std::uint32_t expected) {
    step([this, expected](Shared& s) {
      s.loop_thread_sleeps = s.word == expected || bug_ == SeatBug::sleep_without_looking;
      return 0U;
    });
    step([](const Shared& s) { return !s.loop_thread_sleeps; }, [](Shared&) { return 0U; });
    slept_ = true;
  }
  void wake() {
    if (bug_ == SeatBug::hand_over_not_woken) return;
    step([](Shared& s) { return s.loop_thread_sleeps = false, 0U; });
  }

  // What core.cpp does beside.
  void ring() {
    step([](Shared& s) { return s.bell = true, 0U; });
  }
  [[nodiscard]] SeatBug bug() const { return bug_; }

 private:
  /// A loop is at its head again: only what came before it is remembered.
  void restart_at(std::size_t place) {
    if (next_ != results_.size() || next_ == place) return;
    results_.resize(place);
    next_ = place;
  }

  void start_alarm() {
    step([](Shared& s) {
      s.alarm_runs = true;
      s.alarm_rang = false;
      return 0U;
    });
  }

  Shared& shared_;
  Results& results_;
  SeatBug bug_;
  std::size_t next_ = 0;
  std::size_t loop_ = 0;  // where the last loop began
  bool slept_ = false;
  std::optional<std::size_t> waiting_;
};

void take_tasks(Steps& steps) {
  const bool late = steps.bug() == SeatBug::bell_stopped_after_tasks;
  const Steps::Effect stop = [](Shared& s) { return s.bell = false, 0U; };
  if (!late) steps.step(stop);
  steps.step([](Shared& s) { return s.run_tasks(), 0U; });
  if (late) steps.step(stop);
}

bool poll_loop(Steps& steps, bool wait, std::size_t driver) {
  const std::uint32_t bell =
      steps.step([wait](const Shared& s) { return !wait || s.polling_would_return(); },
                 [driver](Shared& s) {
                   if (s.driver != driver) throw Broken{"two threads have the seat"};
                   s.read();
                   if (driver == 0) s.bell_found = false;
                   return s.bell ? 1U : 0U;
                 });
  return bell != 0;
}

bool may_step_aside(Steps& steps) {
  return steps.step([](Shared& s) { return s.mailbox_empty() && !s.call_under_way() ? 1U : 0U; }) !=
         0;
}

/// Once around LoopCore::run().
void loop_thread(Steps& steps) {
  redlock::net::LoopSeat<Steps> seat(steps);
  if (!may_step_aside(steps)) {
    if (poll_loop(steps, true, 0)) take_tasks(steps);
    throw BackAtTop{};
  }
  bool again = true;
  while (again) {
    if (poll_loop(steps, false, 0)) take_tasks(steps);
    again = steps.bug() != SeatBug::polled_once_only &&
            steps.step([](Shared& s) { return s.to_register ? 1U : 0U; }) != 0;
  }
  if (!may_step_aside(steps)) throw BackAtTop{};
  seat.sleep_beside();
  throw BackAtTop{};
}

void post(Steps& steps, const std::function<void(Shared&)>& push) {
  const bool too_early = steps.bug() == SeatBug::bell_before_task;
  if (too_early) steps.ring();
  const bool first = steps.step([&push](Shared& s) {
    const std::uint32_t empty = s.mailbox_empty() ? 1 : 0;
    push(s);
    return empty;
  }) != 0;
  if (first && !too_early) steps.ring();
}

/// LoopCore::drive().
void drive(Steps& steps, redlock::net::LoopSeat<Steps>& seat, std::size_t self) {
  steps.step([self](Shared& s) {
    if (s.driver != 0) throw Broken{"two threads have the seat"};
    s.driver = static_cast<std::uint8_t>(self + 1);
    s.calls[self] = Answer::under_way;
    return 0U;
  });
  const auto is_over = [&steps, self](bool rings) {
    return steps.step([self, rings](Shared& s) {
      const bool over = rings || s.calls[self] == Answer::given;
      if (over) s.driver = 0;
      return over ? 1U : 0U;
    }) != 0;
  };
  bool rings = false;
  while (!is_over(rings)) {
    rings = poll_loop(steps, true, self + 1);
    if (rings && steps.bug() == SeatBug::bell_stopped_by_caller) {
      steps.step([](Shared& s) { return s.bell = false, 0U; });
    }
  }
  seat.leave(rings || steps.bug() == SeatBug::bell_claimed);
}

/// Client::Impl::perform().
void caller(Steps& steps, std::size_t self) {
  redlock::net::LoopSeat<Steps> seat(steps);
  const bool empty = steps.step([](Shared& s) { return s.mailbox_empty() ? 1U : 0U; }) != 0;
  if (empty && seat.take()) {
    drive(steps, seat, self);
  } else {
    post(steps, [self](Shared& s) { s.calls[self] = Answer::posted; });
  }
  steps.step([self](const Shared& s) { return s.calls[self] == Answer::given; },
             [self](Shared& s) {
               s.calls[self] = Answer::not_asked;
               ++s.answered[self];
               return 0U;
             });
  throw BackAtTop{};
}

void poster(Steps& steps, std::size_t tasks) {
  for (std::size_t task = 0; task < tasks; ++task) {
    post(steps, [](Shared& s) { ++s.tasks; });
  }
}

class Exploration {
 public:
  Exploration(const SeatCast& cast, SeatBug bug) : cast_(cast), bug_(bug) {}

  SeatFindings run() {
    State first;
    first.shared.events_to_come = static_cast<std::uint8_t>(cast_.events);
    first.threads.resize(2 + cast_.callers);
    first.ended.resize(first.threads.size());
    visit(std::move(first));
    while (!open_.empty() && findings_.problem.empty()) {
      const State state = std::move(open_.back());
      open_.pop_back();
      expand(state);
    }
    return findings_;
  }

 private:
  void visit(State&& state) {
    if (!seen_.insert(state.key()).second) return;
    ++findings_.states;
    open_.push_back(std::move(state));
  }

  void expand(const State& state) {
    bool moved = false;
    for (std::size_t thread = 0; thread < state.threads.size(); ++thread) {
      State next = state;
      if (!advance(next, thread)) continue;
      moved = true;
      visit(std::move(next));
    }
    for (std::size_t call = 0; call < cast_.callers; ++call) {
      if (state.shared.calls[call] != Answer::under_way) continue;
      State next = state;
      next.shared.calls[call] = Answer::readable;
      moved = true;
      visit(std::move(next));
    }
    if (state.shared.events_to_come > 0) {
      State next = state;
      --next.shared.events_to_come;
      ++next.shared.events;
      moved = true;
      visit(std::move(next));
    }
    // Nothing but events that concern no call may wait for the alarm.
    if (!moved) judge_without_alarm(state);
    const bool early = moved && state.shared.early_alarms > 0;
    if (state.shared.alarm_runs && (early || !moved)) {
      State next = state;
      if (early) --next.shared.early_alarms;
      next.shared.alarm_runs = false;
      next.shared.alarm_rang = true;
      visit(std::move(next));
    } else if (!moved) {
      ++findings_.ends;
      if (state.shared.events > 0 || state.shared.to_register) {
        complain("an event is slept through");
      }
    }
  }

  void judge_without_alarm(const State& state) {
    for (std::size_t caller = 0; caller < cast_.callers; ++caller) {
      if (state.shared.answered[caller] < cast_.calls_each) complain("a call is never answered");
    }
    if (state.shared.tasks_run < cast_.posted) complain("a task is not run");
  }

  /// Whether the thread could do a step.
  bool advance(State& state, std::size_t thread) {
    if (state.ended[thread]) return false;
    Results& results = state.threads[thread];
    Steps steps(state.shared, results, bug_);
    try {
      if (thread == 0) {
        loop_thread(steps);
      } else if (thread <= cast_.callers) {
        if (state.shared.answered[thread - 1] == cast_.calls_each) return false;
        caller(steps, thread - 1);
      } else {
        poster(steps, cast_.posted);
      }
      state.ended[thread] = true;
      results.clear();
      return true;
    } catch (const StepDone&) {
      return true;
    } catch (const BackAtTop&) {
      results.clear();
      return true;
    } catch (const Blocked&) {
      return false;
    } catch (const Broken& broken) {
      complain(broken.problem);
      return true;
    }
  }

  void complain(const std::string& problem) {
    if (findings_.problem.empty()) findings_.problem = problem;
  }

  const SeatCast cast_;
  const SeatBug bug_;
  SeatFindings findings_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
};

}  // namespace

SeatFindings explore_seat(const SeatCast& cast, SeatBug bug) {
  return Exploration(cast, bug).run();
}

}  // namespace testing
