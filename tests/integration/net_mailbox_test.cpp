// SPDX-License-Identifier: MIT
// The mailbox: every task that was accepted runs exactly once, in each poster's order.
#include <atomic>
#include <doctest/doctest.h>
#include <thread>
#include <vector>

#include "net/mailbox.hpp"

using redlock::net::Mailbox;
using redlock::net::Task;

namespace {

struct Note final : Task {
  void run() override {
    ++runs;
    if (journal != nullptr) journal->push_back(number);
  }
  int number = 0;
  int runs = 0;
  std::vector<int>* journal = nullptr;
};

}  // namespace

TEST_CASE("tasks run in the order of posting, and only the first asks for a wake-up") {
  Mailbox mailbox;
  std::vector<int> journal;
  std::vector<Note> notes(3);
  for (int i = 0; i < 3; ++i) {
    notes[static_cast<std::size_t>(i)].number = i;
    notes[static_cast<std::size_t>(i)].journal = &journal;
  }
  CHECK(mailbox.push(notes[0]) == Mailbox::Posted::first);
  CHECK(mailbox.push(notes[1]) == Mailbox::Posted::behind_others);
  CHECK(mailbox.push(notes[2]) == Mailbox::Posted::behind_others);
  mailbox.run_all();
  CHECK(journal == std::vector{0, 1, 2});
  CHECK(mailbox.push(notes[0]) == Mailbox::Posted::first);
  mailbox.run_all();
  CHECK(journal == std::vector{0, 1, 2, 0});
}

TEST_CASE("a task may post itself again while it runs, and may destroy itself") {
  struct Again final : Task {
    explicit Again(Mailbox& where) : mailbox(where) {}
    void run() override {
      if (++runs < 3) {
        CHECK(mailbox.push(*this) == Mailbox::Posted::first);
      } else {
        delete this;
      }
    }
    Mailbox& mailbox;
    int runs = 0;
  };
  Mailbox mailbox;
  auto* task = new Again(mailbox);
  CHECK(mailbox.push(*task) == Mailbox::Posted::first);
  mailbox.run_all();
  CHECK(task->runs == 1);
  mailbox.run_all();
  CHECK(task->runs == 2);
  mailbox.run_all();
}

TEST_CASE("closing runs what was accepted and refuses the rest, also what that posts") {
  struct Again final : Task {
    explicit Again(Mailbox& where) : mailbox(where) {}
    void run() override { posted = mailbox.push(*this); }
    Mailbox& mailbox;
    Mailbox::Posted posted = Mailbox::Posted::first;
  };
  Mailbox mailbox;
  Again accepted(mailbox);
  Note refused;
  CHECK(mailbox.push(accepted) == Mailbox::Posted::first);
  mailbox.close();
  CHECK(accepted.posted == Mailbox::Posted::refused);
  CHECK(mailbox.push(refused) == Mailbox::Posted::refused);
  CHECK(refused.runs == 0);
}

TEST_CASE("with many threads posting while it closes, each task runs once or is refused") {
  constexpr int threads = 8;
  constexpr int each = 20'000;
  Mailbox mailbox;
  std::atomic<int> posters = threads;
  std::vector<std::vector<Note>> notes(threads);
  std::vector<int> accepted(threads, 0);
  std::vector<std::jthread> running;
  for (std::size_t t = 0; t < threads; ++t) {
    notes[t].resize(each);
    running.emplace_back([&, t] {
      for (Note& note : notes[t]) {
        if (mailbox.push(note) == Mailbox::Posted::refused) break;
        ++accepted[t];
      }
      --posters;
    });
  }
  for (int turn = 0; posters > threads / 2 && turn < 1'000; ++turn) mailbox.run_all();
  mailbox.close();
  running.clear();
  for (std::size_t t = 0; t < threads; ++t) {
    for (int i = 0; i < each; ++i) {
      REQUIRE(notes[t][static_cast<std::size_t>(i)].runs == (i < accepted[t] ? 1 : 0));
    }
  }
}
