// SPDX-License-Identifier: MIT
// Holds every conversation about the library's scripts, see script_talk.hpp. In a file each has a
// title, and its steps behind it.
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>

#include "simulation/script_talk.hpp"

using redlock::simulation::talk;

TEST_CASE("the library's scripts reply as the conversations say") {
  int held = 0;
  for (const auto& file : std::filesystem::directory_iterator(CONVERSATION_DIR)) {
    std::ifstream lines(file.path());
    std::string title;
    std::string steps;
    const auto hold = [&] {
      CAPTURE(title);
      if (!title.empty()) talk(steps);
      held += title.empty() ? 0 : 1;
      steps.clear();
    };
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(' ')) {
        steps += line + '\n';
      } else if (!line.empty() && !line.starts_with('#')) {
        hold();
        title = line;
      }
    }
    hold();
  }
  CHECK(held >= 50);
}

TEST_CASE("one call passes over 64 dead waiters at most, and the next one goes on with them") {
  std::string seventy_one = "waiting ";
  for (int i = 1; i <= 70; ++i) {
    seventy_one += "cc:" + std::to_string(i) + " " + std::to_string(200 - i) + ", ";
  }
  seventy_one += "aa:1 50\n";
  talk(seventy_one + R"(
    release holder               -> [1]
    line                         -> cc:65 cc:66 cc:67 cc:68 cc:69 cc:70 aa:1
    acquire x as dd:1 0          -> [0 20 1] [aa 1 0]
    line                         -> aa:1(20) dd:1
  )");
  // Without an end in sight the lock is kept, so that it goes to none before its turn.
  talk(seventy_one + R"(
    DEL lock                     -> 1
    acquire x as dd:1 0          -> [0 1 7]
  )");
}
