// SPDX-License-Identifier: MIT
// From what a user asks for to what the engine is asked: checks and defaults.
#pragma once

#include <redlock/client.hpp>

#include "client/call.hpp"
#include "engine/types.hpp"

namespace redlock::client {

[[nodiscard]] Result<AskAcquire> ask_acquire(engine::Name name, const AcquireOptions& options,
                                             const ClientOptions& client);

[[nodiscard]] Result<AskAttach> ask_attach(engine::Name name, const Grant& grant,
                                           const AcquireOptions& options,
                                           const ClientOptions& client);

/// One more level of a lease, as somebody wants it who would acquire it otherwise.
[[nodiscard]] Result<AskEnter> ask_enter(std::shared_ptr<Lease::State> lease,
                                         const AcquireOptions& options,
                                         const ClientOptions& client);

[[nodiscard]] Result<AskReleaseGrant> ask_release(engine::Name name, const Grant& grant,
                                                  const ClientOptions& client);

}  // namespace redlock::client
