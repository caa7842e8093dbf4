// SPDX-License-Identifier: MIT
// What a program without an observer is told, on stderr, because nothing else of it would notice.
// A line is dropped rather than waited with: it comes from the thread that renews leases.
#pragma once

#include <string_view>

#include <redlock/error.hpp>
#include <redlock/observer.hpp>

namespace redlock::client {

/// A lease of this name was lost. Of all these warnings the program gets one in ten seconds at
/// most, which counts those that were left out.
void warn_of_loss(std::string_view name, LossReason reason) noexcept;

/// An unlock(), which has no result to return, did not find or could not confirm its lock.
void warn_of_release(const Error& error) noexcept;

/// A client has ended by itself: once for each, and without an allocation.
void warn_of_failure(const char* sentence) noexcept;

}  // namespace redlock::client
