// SPDX-License-Identifier: MIT
// Warnings on stderr for a program without an observer, about events that would go unnoticed
// otherwise. A line is dropped rather than delayed: it comes from the thread that renews leases.
#pragma once

#include <string_view>

#include <redlock/error.hpp>
#include <redlock/observer.hpp>

namespace redlock::client {

/// A lease of this name was lost. The program gets one such warning in ten seconds at most, with
/// the number of those that were left out.
void warn_of_loss(std::string_view name, LossReason reason) noexcept;

/// An unlock(), which has no result to return, did not find or could not confirm its lock.
void warn_of_release(const Error& error) noexcept;

/// A client has ended by itself: once for each, and without an allocation.
void warn_of_failure(const char* sentence) noexcept;

}  // namespace redlock::client
