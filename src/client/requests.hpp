// SPDX-License-Identifier: MIT
// From the options of a call to a request of the engine: checks and defaults.
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

[[nodiscard]] Result<AskTake> ask_take(HeldLocks::Key key, std::weak_ptr<HeldLocks::Handle> handle,
                                       const AcquireOptions& options, const ClientOptions& client);

[[nodiscard]] Result<AskReleaseGrant> ask_release(engine::Name name, const Grant& grant,
                                                  const ClientOptions& client);

}  // namespace redlock::client
