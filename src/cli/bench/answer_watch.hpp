// SPDX-License-Identifier: MIT
// Tells the recorder how nodes answered and voted, for one client.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <redlock/observer.hpp>

#include "cli/bench/measurements.hpp"

namespace redlock::cli {

/// Knows the nodes from the client's first attempt on, and ignores answers from before.
class AnswerWatch : public Observer {
 public:
  /// The recorder must outlive the client.
  AnswerWatch(Recorder& recorder, std::size_t nodes)
      : recorder_(recorder), quorum_(nodes / 2 + 1) {}

  void on_attempt(std::string_view name, const Errc* code, const std::vector<NodeVote>& votes,
                  std::chrono::nanoseconds elapsed) override;
  void on_answer(const NodeAnswer& answer) override;

 private:
  // The answers to one attempt's acquires. Attempts are numbered as they begin, so that one that is
  // pushed out by a later one is long over.
  struct AttemptAnswers {
    std::uint64_t attempt = 0;
    std::size_t count = 0;
    bool settled = false;
  };
  [[nodiscard]] AttemptAnswers& answers_to(std::uint64_t attempt);

  Recorder& recorder_;
  std::size_t quorum_;
  std::vector<std::string> nodes_;
  std::array<AttemptAnswers, 4096> attempts_{};
};

}  // namespace redlock::cli
