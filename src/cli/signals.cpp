// SPDX-License-Identifier: MIT
#include "cli/signals.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cstring>
#include <fmt/core.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace redlock::cli {
namespace {

constexpr std::array handled{SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGCONT, SIGWINCH, SIGCHLD};

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t only(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  return set;
}

}  // namespace

Signals::Signals() {
  // A parent may have left SIGCHLD ignored; children would then vanish without a status.
  ::signal(SIGCHLD, SIG_DFL);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &inherited_pipe_);

  ::sigemptyset(&taken_);
  for (const int signal : handled) {
    if (!is_ignored(signal)) ::sigaddset(&taken_, signal);
  }
  // Giving the terminal away and taking it back must not stop the command.
  auto blocked = taken_;
  ::sigaddset(&blocked, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &inherited_mask_);
  fd_ = FileDescriptor(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK), "signal descriptor");
}

Signals::~Signals() {
  ::pthread_sigmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

std::optional<int> Signals::take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void Signals::take_stop_requests() {
  if (is_ignored(SIGTSTP)) return;
  ::sigaddset(&taken_, SIGTSTP);
  ::pthread_sigmask(SIG_BLOCK, &taken_, nullptr);
  ::signalfd(fd_.get(), &taken_, 0);
}

bool Signals::stop_self() const {
  const auto stop = only(SIGTSTP);
  ::kill(0, SIGTSTP);
  // The process stops in this call, and returns from it when it is continued.
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  if (::sigismember(&taken_, SIGTSTP) == 1) ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  if (is_ignored(SIGTSTP)) return false;
  // The SIGCONT that continued us is pending, and is not for the child.
  sigset_t waiting;
  ::sigpending(&waiting);
  return is_ignored(SIGCONT) || ::sigismember(&waiting, SIGCONT) == 1;
}

void Signals::restore_inherited() const noexcept {
  ::sigaction(SIGPIPE, &inherited_pipe_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &inherited_mask_, nullptr);
}

SignalsKeptOut::SignalsKeptOut() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsKeptOut::~SignalsKeptOut() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

std::optional<int> parse_signal(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  if (const auto [rest, problem] = std::from_chars(text.data(), end, number);
      problem == std::errc() && rest == end) {
    return number > 0 && number < NSIG ? std::optional(number) : std::nullopt;
  }
  std::string name;
  for (const char c : text) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

std::string signal_name(int signal) {
  const char* known = ::sigabbrev_np(signal);
  return known != nullptr ? fmt::format("SIG{}", known) : fmt::format("signal {}", signal);
}

}  // namespace redlock::cli
