// SPDX-License-Identifier: MIT
// Signals are for the program's own threads. Threads of the library block all of them, and its
// writes raise none.
#pragma once

#include <csignal>
#include <ctime>
#include <pthread.h>

namespace redlock::net {

/// Blocks signals while it lives; threads that are started meanwhile block them for good.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// A write meanwhile to a connection that was reset, or to a pipe without a reader, gets an error
/// and no SIGPIPE.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec at_once{};
    static_cast<void>(sigtimedwait(&pipe_, nullptr, &at_once));
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

}  // namespace redlock::net
