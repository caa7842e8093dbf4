// SPDX-License-Identifier: MIT
#include "soak/crew.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::soak {

static_assert(std::atomic<BootClock::rep>::is_always_lock_free);

void Times::note(BootClock::duration time) {
  const std::size_t place = count++;
  if (place < all.size()) all[place] = static_cast<std::int32_t>(time / 1us);
}

double Times::percentile(double percent) const {
  if (noted() == 0) return 0;
  std::vector<std::int32_t> sorted(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(noted()));
  std::ranges::sort(sorted);
  const auto rank = static_cast<std::size_t>(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)] / 1000.0;
}

Board& Board::make_shared() {
  void* const place =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::runtime_error("cannot share memory");
  return *new (place) Board{};
}

Hold* Board::open(const Hold& hold) {
  const std::size_t place = hold_count++;
  if (place >= most_holds) return nullptr;
  // Whoever is killed before it has written the token has written nothing.
  Hold& written = holds[place];
  written.name = hold.name;
  written.from = hold.from;
  written.to = hold.to;
  std::atomic_ref(written.token).store(hold.token, std::memory_order_release);
  return &written;
}

void Board::count(const Error& error) {
  const bool contended = error.code == Errc::contended || error.code == Errc::timed_out;
  ++(contended ? given_up : failed);
}

bool Board::is_counted(std::size_t node, std::size_t workers, BootClock::time_point since) const {
  return std::all_of(voted.begin(), voted.begin() + static_cast<std::ptrdiff_t>(workers),
                     [&](const auto& of) { return of[node] >= since.time_since_epoch().count(); });
}

Judgement Board::judge() const {
  if (hold_count > most_holds) throw std::runtime_error("more holds than can be recorded");
  std::vector<Hold> all(holds.begin(), holds.begin() + static_cast<std::ptrdiff_t>(hold_count));
  std::erase_if(all, [](const Hold& hold) { return hold.token == 0; });
  std::ranges::sort(all, [](const Hold& a, const Hold& b) {
    return a.name != b.name ? a.name < b.name : a.from < b.from;
  });
  Judgement found;
  const Hold* longest = nullptr;  // of those with this name so far, the one that lasted longest
  std::uint64_t largest = 0;
  for (const Hold& hold : all) {
    if (longest == nullptr || longest->name != hold.name) {
      longest = nullptr;
      largest = 0;
    }
    if (longest != nullptr && hold.from <= longest->to) ++found.overlaps;
    if (hold.token <= largest) ++found.falling_tokens;
    if (hold.to - hold.from > 1s) ++found.longer_than_a_second;
    if (longest == nullptr || longest->to < hold.to) longest = &hold;
    largest = std::max(largest, hold.token);
  }
  return found;
}

pid_t start_process(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("cannot start a process");
  if (pid > 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    work();
    std::fflush(stdout);
    ::_exit(EXIT_SUCCESS);
  } catch (const std::exception& error) {
    fmt::print(stderr, "soak: {}\n", error.what());
    ::_exit(EXIT_FAILURE);
  }
}

bool end_processes(const std::vector<pid_t>& processes, Board& board, milliseconds patience) {
  board.ended = true;
  const auto limit = BootClock::now() + patience;
  std::size_t ended_badly = 0;
  for (const pid_t pid : processes) {
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (BootClock::now() > limit) ::kill(pid, SIGKILL);
      std::this_thread::sleep_for(1ms);
    }
    if (status != 0) ++ended_badly;
  }
  if (ended_badly > 0) fmt::print("{} processes did not end, or not well\n", ended_badly);
  return ended_badly == 0;
}

Footprint footprint_of(pid_t process) {
  const auto directory = fmt::format("/proc/{}", process);
  const std::filesystem::directory_iterator descriptors(directory + "/fd");
  Footprint found;
  found.descriptors = static_cast<double>(std::distance(begin(descriptors), end(descriptors)));
  std::ifstream status(directory + "/status");
  for (std::string word; status >> word;) {
    if (word == "Threads:") status >> found.threads;
    if (word == "RssAnon:" && status >> found.memory) found.memory /= 1024;
  }
  return found;
}

namespace {

constexpr std::size_t minute = 60;

Footprint mean_of(const std::vector<Footprint>& all) {
  Footprint mean;
  const auto count = static_cast<double>(all.size());
  for (const Footprint& one : all) {
    mean.descriptors += one.descriptors / count;
    mean.threads += one.threads / count;
    mean.memory += one.memory / count;
  }
  return mean;
}

}  // namespace

void Footprints::note(const std::vector<pid_t>& processes) {
  std::vector<Footprint> each;
  for (const pid_t process : processes) each.push_back(footprint_of(process));
  all_.push_back(mean_of(each));
}

Footprint Footprints::mean_from(std::size_t index) const {
  const auto from = all_.begin() + static_cast<std::ptrdiff_t>(index);
  return mean_of({from, from + minute});
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
