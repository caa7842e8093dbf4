// SPDX-License-Identifier: MIT
// A descriptor that becomes readable when a stop is requested.
#pragma once

#include <cstdint>
#include <stop_token>
#include <sys/eventfd.h>
#include <unistd.h>

namespace redlock::c {

class LostDescriptor {
 public:
  explicit LostDescriptor(std::stop_token lost)
      : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        on_lost_(std::move(lost), Signal{descriptor_}) {}
  /// A signal under way is waited for, and the descriptor closed behind it.
  ~LostDescriptor() = default;
  LostDescriptor(const LostDescriptor&) = delete;
  LostDescriptor& operator=(const LostDescriptor&) = delete;

  /// -1 if the system gave no descriptor.
  [[nodiscard]] int get() const noexcept { return descriptor_.number; }

 private:
  struct EventDescriptor {
    explicit EventDescriptor(int made) noexcept : number(made) {}
    EventDescriptor(const EventDescriptor&) = delete;
    EventDescriptor& operator=(const EventDescriptor&) = delete;
    ~EventDescriptor() {
      if (number >= 0) ::close(number);
    }
    int number;
  };
  struct Signal {
    explicit Signal(const EventDescriptor& descriptor) noexcept : number(descriptor.number) {}
    void operator()() const noexcept {
      if (number < 0) return;
      const std::uint64_t one = 1;
      // It cannot fail: nothing else adds to the number of this descriptor.
      [[maybe_unused]] const auto written = ::write(number, &one, sizeof one);
    }
    int number;
  };

  EventDescriptor descriptor_;
  std::stop_callback<Signal> on_lost_;
};

}  // namespace redlock::c
