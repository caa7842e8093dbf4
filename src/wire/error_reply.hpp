// SPDX-License-Identifier: MIT
// The meaning of a node's error reply: the cause, and whether the command can have changed
// anything.
#pragma once

#include <string>
#include <string_view>

#include "engine/messages.hpp"
#include "wire/secrets.hpp"

namespace redlock::wire {

/// True for the answer to EVALSHA with a digest that the node does not know.
[[nodiscard]] bool is_no_script(std::string_view error);

/// The cause by the error's prefix, looked for inside what a script reports too. The delivery is
/// `refused` where Redis gives that error before it runs or writes anything, otherwise `unknown`.
/// The detail is the error's text as printable() makes it, or says that there is none, and behind a
/// semicolon the remedy; where a right is missing, that is the right to permit. `script` is the
/// text of the script that gave the error: some servers name no command, only the line of it.
[[nodiscard]] engine::Unavailable to_unavailable(std::string_view error, const Secrets& secrets,
                                                 std::string_view script = {});

/// Of the detail of a missing permission: the node does not have the command, which no right would
/// change.
[[nodiscard]] bool is_of_renamed(std::string_view detail);

/// Fit to be shown: every occurrence of a secret masked, as a node may repeat what it was sent,
/// even the AUTH; then text::visible(), cut after 200 bytes.
[[nodiscard]] std::string printable(std::string_view text, const Secrets& secrets);

}  // namespace redlock::wire
