// SPDX-License-Identifier: MIT
#include "soak/footprint.hpp"

#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <iterator>
#include <string>

namespace redlock::soak {
namespace {

constexpr std::size_t minute = 60;

double entries_of(const std::string& directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Footprint footprint_of(pid_t process) {
  const auto directory = fmt::format("/proc/{}", process);
  Footprint found;
  found.descriptors = entries_of(directory + "/fd");
  std::ifstream status(directory + "/status");
  for (std::string word; status >> word;) {
    if (word == "Threads:") status >> found.threads;
    if (word == "RssAnon:" && status >> found.memory) found.memory /= 1024;
  }
  return found;
}

void Footprints::note(const std::vector<pid_t>& processes) {
  Footprint mean;
  const auto count = static_cast<double>(processes.size());
  for (const pid_t process : processes) {
    const Footprint one = footprint_of(process);
    mean.descriptors += one.descriptors / count;
    mean.threads += one.threads / count;
    mean.memory += one.memory / count;
  }
  all_.push_back(mean);
}

Footprint Footprints::mean_from(std::size_t index) const {
  Footprint mean;
  for (std::size_t i = index; i < index + minute; ++i) {
    mean.descriptors += all_[i].descriptors / minute;
    mean.threads += all_[i].threads / minute;
    mean.memory += all_[i].memory / minute;
  }
  return mean;
}

bool Footprints::are_flat(double more, double slack) const {
  if (all_.size() < 4 * minute) return true;
  const Footprint first = mean_from(0);
  const Footprint last = mean_from(all_.size() - minute);
  fmt::print(
      "a process has {:.2f} descriptors in the first minute, {:.2f} in the last; {:.2f} and {:.2f} "
      "threads; {:.2f} and {:.2f} MiB of memory\n",
      first.descriptors, last.descriptors, first.threads, last.threads, first.memory, last.memory);
  return last.descriptors <= first.descriptors + more && last.threads <= first.threads + more &&
         last.memory <= 1.1 * first.memory + slack;
}

}  // namespace redlock::soak
