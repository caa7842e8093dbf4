// SPDX-License-Identifier: MIT
// The last failure of each thread, kept for redlock_last_error() and redlock_last_error_json(), and
// the wall between C++ and C: no exception crosses it.
#pragma once

#include <string>
#include <utility>

#include <redlock/error.hpp>
#include <redlock/redlock.h>

namespace redlock::c {

/// In the form of redlock_last_error_json(). Bytes that are not UTF-8 are replaced by U+FFFD.
[[nodiscard]] std::string to_json(const Error& error);

/// Keeps the error for the calling thread, and returns its number.
[[nodiscard]] redlock_status fail(const Error& error);

/// The same for an argument that cannot work.
[[nodiscard]] redlock_status refuse(const char* sentence);

/// For a lack of memory, a descriptor or a thread. Needs none of them; the sentence is not copied.
[[nodiscard]] redlock_status out_of_resources(const char* sentence) noexcept;

/// To be called in a catch clause: the exception as a failure.
[[nodiscard]] redlock_status fail_by_exception() noexcept;

/// Returns the function's result, or the failure that its exception means.
template <typename Function>
[[nodiscard]] redlock_status guarded(Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    return fail_by_exception();
  }
}

}  // namespace redlock::c
