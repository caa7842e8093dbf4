// SPDX-License-Identifier: MIT
#include "customer.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <functional>
#include <future>
#include <map>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <unistd.h>

#include <redlock/redlock.hpp>

#include "booking_record.hpp"

namespace seat_booking {

namespace {

using namespace std::chrono_literals;
using redlock::BootClock;

/// One line for the stage; a kind that begins with a dot is not printed.
void say(const std::string& kind, const std::string& text) {
  const auto now = BootClock::now().time_since_epoch().count();
  const std::string line = fmt::format("{}\t{}\t{}\n", now, kind, text);
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(3);
}

/// Waits until the stage sends a word.
void await_word() {
  char word = 0;
  if (::read(STDIN_FILENO, &word, 1) != 1) std::_Exit(4);
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return fmt::format("{:.1f} ms", std::chrono::duration<double, std::milli>(time).count());
}

/// The nodes that voted like this, by their number: "1 3 4".
std::string nodes_that(const std::vector<redlock::NodeVote>& votes, redlock::Vote vote) {
  std::string nodes;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (votes[i].vote == vote) nodes += fmt::format("{}{}", nodes.empty() ? "" : " ", i + 1);
  }
  return nodes.empty() ? "none" : nodes;
}

/// Tells how the nodes voted: on a grant always, on a refusal the first time.
class Votes : public redlock::Observer {
 public:
  explicit Votes(bool silent) : silent_(silent) {}

  void on_attempt(std::string_view name, const redlock::Errc* code,
                  const std::vector<redlock::NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override {
    using redlock::Vote;
    if (silent_) return;
    if (code == nullptr) {
      say("votes", fmt::format("nodes {} grant {}, after {}", nodes_that(votes, Vote::granted),
                               name, milliseconds(elapsed)));
    } else if (!refused_) {
      refused_ = true;
      say("refused",
          fmt::format("nodes {} refuse {}; waits", nodes_that(votes, Vote::refused), name));
    }
  }

 private:
  bool silent_;
  bool refused_ = false;
};

std::vector<std::string> nodes_from_environment() {
  const char* list = std::getenv("REDLOCK_NODES");
  std::istringstream in(list == nullptr ? "" : list);
  std::vector<std::string> nodes;
  for (std::string node; std::getline(in, node, ',');) nodes.push_back(node);
  return nodes;
}

template <typename T>
T must(redlock::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

redlock::Client connect(bool silent = false) {
  redlock::ClientOptions options;
  options.nodes = nodes_from_environment();
  options.lease = 3s;  // a killed customer's lock ends with its lease
  options.client_name = "seat_booking";
  options.observer = std::make_shared<Votes>(silent);
  return must(redlock::Client::create(std::move(options)));
}

struct Customer {
  std::string name;
  BookingRecord record;
  std::string seat;

  [[nodiscard]] std::string lock_name() const { return "seat " + seat; }
  void book(const redlock::Lease& lease) const;
};

/// Books the seat, or finds that another customer has it.
void Customer::book(const redlock::Lease& lease) const {
  const std::uint64_t token = lease.token();
  switch (record.book(seat, {name, token})) {
    case BookingRecord::Answer::booked:
      return say("booked", fmt::format("BOOKS {} with token {}", seat, token));
    case BookingRecord::Answer::taken:
      return say("taken", fmt::format("has the lock, token {}, but finds {} booked by {}", token,
                                      seat, record.look_up(seat)->customer));
    case BookingRecord::Answer::token_too_old:
      return say("turned away",
                 fmt::format("is turned away: {} was booked with token {}, larger than {}", seat,
                             record.look_up(seat)->token, token));
  }
}

/// Everybody at once: the stage gives the word.
void race(const Customer& me) {
  const redlock::Client client = connect();
  say(".ready", "");
  await_word();
  say("asks", "wants " + me.seat);
  const redlock::Lease lease = must(client.lock(me.lock_name()).acquire({.wait = 20s}));
  me.book(lease);
}  // the lease is released here, and the client waits for it

/// Books that many seats in a row, twice, and reports the median cost of the lock.
void book_rows(const Customer& me, int seats) {
  const redlock::Client client = connect(true);
  for (const char row : {'B', 'C'}) {
    std::vector<std::chrono::nanoseconds> times;
    for (int number = 1; number <= seats; ++number) {
      const Customer one{me.name, me.record, fmt::format("{}{:02}", row, number)};
      const auto start = BootClock::now();
      const redlock::Lease lease = must(client.lock(one.lock_name()).acquire({.wait = 5s}));
      times.push_back(BootClock::now() - start);
      if (one.record.book(one.seat, {one.name, lease.token()}) != BookingRecord::Answer::booked) {
        throw std::runtime_error(one.seat + " could not be booked");
      }
    }
    std::ranges::nth_element(times, times.begin() + seats / 2);
    const auto median = times[static_cast<std::size_t>(seats) / 2];
    say(".median", std::to_string(median.count()));
    say("row", fmt::format("booked {} seats of row {}; the median lock took {}", seats, row,
                           milliseconds(median)));
    await_word();
  }
}

/// Holds a seat for as long as a customer may think, and does not pay.
void think_too_long(const Customer& me, std::chrono::milliseconds time) {
  const redlock::Client client = connect();
  redlock::Lease lease = must(client.lock(me.lock_name()).acquire({.lease = time, .wait = 20s}));
  say("holds", fmt::format("holds {} for {} ms with token {}, and looks for the credit card",
                           me.seat, time.count(), lease.token()));
  std::promise<void> over;
  const std::stop_callback on_lost(lease.lost(), [&over] { over.set_value(); });
  over.get_future().wait();
  say("lost", fmt::format("is told that the time is over, {} before the nodes give {} away",
                          milliseconds(lease.remaining()), me.seat));
  // Went away without a word: the nodes themselves must free the seat.
  static_cast<void>(lease.detach());
}

/// Checks the lease, and is stopped between the check and the booking.
void book_late(const Customer& me, std::chrono::milliseconds time) {
  const redlock::Client client = connect();
  redlock::Lease lease = must(client.lock(me.lock_name()).acquire({.lease = time, .wait = 20s}));
  if (!lease.valid()) throw std::runtime_error("the lease was over too soon");
  say("checked", fmt::format("holds {} with token {}, has paid, and sees that the lease is valid "
                             "for another {}",
                             me.seat, lease.token(), milliseconds(lease.remaining())));
  await_word();
  say("continues", fmt::format("goes on where it was stopped and books {}", me.seat));
  me.book(lease);
  say(lease.valid() ? "valid" : "invalid",
      lease.valid() ? "still sees a valid lease" : "now sees that the lease is over");
}

/// Waits for a seat, and books it.
void wait_and_book(const Customer& me) {
  const redlock::Client client = connect();
  const redlock::Lease lease = must(client.lock(me.lock_name()).acquire({.wait = 20s}));
  me.book(lease);
}

}  // namespace

int be_customer(const std::vector<std::string>& arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the play is over when the stage is gone
  const Customer me{arguments.at(0), BookingRecord(arguments.at(2)), arguments.at(3)};
  const std::string& role = arguments.at(1);
  const int number = arguments.size() > 4 ? std::stoi(arguments[4]) : 0;
  try {
    if (role == "race") race(me);
    if (role == "book-rows") book_rows(me, number);
    if (role == "think-too-long") think_too_long(me, std::chrono::milliseconds(number));
    if (role == "book-late") book_late(me, std::chrono::milliseconds(number));
    if (role == "wait-and-book") wait_and_book(me);
    return 0;
  } catch (const std::exception& failure) {
    say("failed", failure.what());
    return 1;
  }
}

}  // namespace seat_booking
