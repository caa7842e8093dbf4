// SPDX-License-Identifier: MIT
// The subcommands of redlock, each in a file of its own.
#pragma once

#include "cli/invocation.hpp"

namespace redlock::cli {

void add_exec(CLI::App& app, Invocation& invocation);
void add_fence(CLI::App& app, Invocation& invocation);
void add_acquire(CLI::App& app, Invocation& invocation);
void add_hold(CLI::App& app, Invocation& invocation);
void add_release(CLI::App& app, Invocation& invocation);
void add_status(CLI::App& app, Invocation& invocation);
void add_waiters(CLI::App& app, Invocation& invocation);
void add_list(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_adopt(CLI::App& app, Invocation& invocation);
void add_set(CLI::App& app, Invocation& invocation);
void add_completion(CLI::App& app, Invocation& invocation);
void add_manual(CLI::App& app, Invocation& invocation);

}  // namespace redlock::cli
