// SPDX-License-Identifier: MIT
// An open file descriptor that closes itself, and the few kinds of it that the command makes.
#pragma once

#include <string_view>
#include <utility>

namespace redlock::cli {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes over the descriptor. Throws Exit, naming `what`, if it is negative: errno says why.
  FileDescriptor(int fd, std::string_view what);
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
  /// Both ends close on exec.
  static Pipe make();
};

/// An event that another thread can notify, and for which poll(2) can wait.
class Event {
 public:
  Event();
  /// Any thread, any number of times.
  void notify() const noexcept;
  /// Forgets the notifications so far.
  void clear() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

}  // namespace redlock::cli
