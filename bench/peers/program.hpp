// SPDX-License-Identifier: MIT
// A peer's program while it runs: orders go to it as lines, each is answered by a line of JSON.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <redlock/clock.hpp>

#include "cluster/process.hpp"
#include "cluster/reaper.hpp"
#include "cluster/unique_fd.hpp"

namespace peers {

using Clock = redlock::BootClock;
using nlohmann::json;

/// What it has to say, and when that arrived. Neither if nothing came in time.
struct Answer {
  json value;
  Clock::time_point at;
};

/// What is the matter with a peer whose program does not answer, in a word or two.
class Trouble : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Program {
 public:
  /// Starts it; what it prints besides goes to a log below `directory`, which it shares with
  /// others.
  Program(const redlock::cluster::Reaper& reaper, const std::filesystem::path& directory,
          const std::vector<std::string>& command)
      : log_(directory / fmt::format("{}.log", number())) {
    const auto answers = directory / fmt::format("{}.answers", number());
    if (::mkfifo(answers.c_str(), 0600) != 0) throw std::runtime_error("cannot make a FIFO");
    answers_ =
        redlock::cluster::UniqueFd(::open(answers.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    const redlock::cluster::UniqueFd orders(ends[0]);
    orders_ = redlock::cluster::UniqueFd(ends[1]);
    ++started_;
    redlock::cluster::SpawnRequest request;
    request.argv = {"sh", "-c", "exec \"$@\" 2>>\"$0\"", log_.string()};
    request.argv.insert(request.argv.end(), command.begin(), command.end());
    request.group = reaper.group();
    request.standard_input = orders.get();
    request.output = answers;
    process_ = redlock::cluster::Process::spawn(request);
  }
  Program(Program&&) noexcept = default;
  Program& operator=(Program&&) noexcept = delete;
  ~Program() { kill(); }

  void order(const std::string& line) const {
    const std::string text = line + "\n";
    // One that has ended is noticed when its answer is read.
    static_cast<void>(::write(orders_.get(), text.data(), text.size()));
  }

  /// The next answer, if there is one by then. Throws Trouble if the program has ended.
  std::optional<Answer> answer_by(Clock::time_point deadline) {
    for (;;) {
      if (const auto end = received_.find('\n'); end != std::string::npos) {
        const std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        const json value = json::parse(line, nullptr, false);
        if (value.is_object()) return Answer{value, arrived_};
        continue;  // something that its libraries print
      }
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd polled{answers_.get(), POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(std::max<long>(left, 0))) == 0) return {};
      std::array<char, 65536> buffer{};
      const auto size = ::read(answers_.get(), buffer.data(), buffer.size());
      if (size == 0) throw Trouble("ended: " + last_words());
      if (size > 0) received_.append(buffer.data(), static_cast<std::size_t>(size));
      arrived_ = Clock::now();
    }
  }
  /// The next answer. Throws Trouble if there is none in this time.
  Answer answer_within(std::chrono::milliseconds time) {
    if (auto answer = answer_by(Clock::now() + time)) return std::move(*answer);
    throw Trouble(fmt::format("hangs (no answer within {} s)", time.count() / 1000));
  }

  void kill() const {
    if (!process_) return;
    process_->signal(SIGKILL);
    process_->await_end(std::chrono::seconds(10));
  }

 private:
  static int number() { return started_; }

  [[nodiscard]] std::string last_words() const {
    std::ifstream log(log_);
    std::string last;
    for (std::string line; std::getline(log, line);) {
      if (line.find_first_not_of(" \t") != std::string::npos) last = line;
    }
    return last.substr(0, 120);
  }

  inline static int started_ = 0;
  std::filesystem::path log_;
  redlock::cluster::UniqueFd answers_;
  redlock::cluster::UniqueFd orders_;
  std::optional<redlock::cluster::Process> process_;
  std::string received_;
  Clock::time_point arrived_;
};

}  // namespace peers
