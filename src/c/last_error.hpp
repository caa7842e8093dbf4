// SPDX-License-Identifier: MIT
// The last failure of each thread, kept for redlock_last_error() and redlock_last_error_json(), and
// the wall between C++ and C: no exception crosses it.
#pragma once

#include <string>
#include <utility>

#include <redlock/error.hpp>
#include <redlock/redlock.h>

namespace redlock::c {

/// As redlock_last_error_json() gives it. What is not UTF-8 is replaced by U+FFFD.
[[nodiscard]] std::string to_json(const Error& error);

/// Keeps it for the calling thread, and answers with its number.
[[nodiscard]] redlock_status fail(const Error& error);

/// The same for an argument that cannot work.
[[nodiscard]] redlock_status refuse(const char* sentence);

/// For want of memory, a descriptor or a thread. Needs none of them; the sentence is kept as it is.
[[nodiscard]] redlock_status out_of_resources(const char* sentence) noexcept;

/// To be called in a catch clause: the exception as a failure.
[[nodiscard]] redlock_status fail_by_exception() noexcept;

/// What the function answers, or the failure that its exception is.
template <typename Function>
[[nodiscard]] redlock_status guarded(Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return fail_by_exception();
  }
}

}  // namespace redlock::c
