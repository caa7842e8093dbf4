// SPDX-License-Identifier: MIT
// The subcommands of redlock, each in a file of its own.
#pragma once

#include "cli/invocation.hpp"

namespace redlock::cli {

using AddSubcommand = void(CLI::App& app, Invocation& invocation);

AddSubcommand add_exec, add_fence, add_acquire, add_hold, add_release, add_status, add_waiters,
    add_list, add_doctor, add_adopt, add_set, add_completion, add_manual;

/// In the order of `redlock --help`. Between these and the last two are the external commands.
inline constexpr AddSubcommand* subcommands[] = {add_exec,    add_fence,  add_acquire, add_hold,
                                                 add_release, add_status, add_waiters, add_list,
                                                 add_doctor,  add_adopt,  add_set};

}  // namespace redlock::cli
