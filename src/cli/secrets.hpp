// SPDX-License-Identifier: MIT
// Keeps passwords in node URIs away from other eyes. The command's arguments are readable by every
// user of the machine (/proc/PID/cmdline, ps), its environment by every process of the same user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli {

/// Copies the arguments, and overwrites the passwords in the originals, where ps reads them. Call
/// this first: the arguments are visible until then.
[[nodiscard]] std::vector<std::string> take_arguments(int argc, char** argv);

/// The variable's value, whose passwords are overwritten in the environment in the same way; empty
/// if it is not set.
[[nodiscard]] std::string take_variable(const char* name);

/// Overwrites each password of the URIs in `text` with asterisks. True if there was one.
bool mask_passwords(char* text);

/// The text with the passwords of its URIs overwritten: for messages about arguments.
[[nodiscard]] std::string without_passwords(std::string_view text);

/// Whether a URI in the text has a password.
[[nodiscard]] bool has_password(std::string text);

}  // namespace redlock::cli
