// SPDX-License-Identifier: MIT
// Redis puts an upper-case word first in its errors. Inside a script Redis 7 keeps it first
// ("OOM ... script: SHA, on @user_script:5."), Redis 6.2 buries it
// ("ERR Error running script (call to f_SHA): @user_script: 5: -OOM ..."). A command that the user
// may not run has no such word inside a script, and other words in each: Redis 6.2 and 7.0 say "The
// user executing the script can't ...", Redis 7.2 and later, Valkey and Redict "ACL failure in
// script: ...", behind "ERR " except in 6.2.
#include "wire/error_reply.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <utility>

#include "text/characters.hpp"
#include "wire/key_layout.hpp"

namespace redlock::wire {
namespace {

struct KnownError {
  std::string_view prefix;
  Cause cause;
  std::string_view remedy = {};  // the remedy of docs/errors.md, in a clause
};

constexpr std::string_view use_masters = "; use independent masters: it is a replica";
constexpr std::string_view do_not_rename = "; do not rename the commands of a lock node";
constexpr std::string_view leave_cluster = "; set cluster-enabled no, or use another node";

// All of these are given before the node runs or writes anything: by the dispatcher, or at the
// first command of a script that would write.
constexpr std::array known{
    KnownError{"LOADING", Cause::loading, "; wait: it votes when it has read its data"},
    KnownError{"BUSY", Cause::busy,
               "; end the script with SCRIPT KILL or FUNCTION KILL, and find its sender"},
    KnownError{"MISCONF", Cause::write_error, "; make room on its disk, or repair it"},
    KnownError{"OOM", Cause::out_of_memory, "; raise maxmemory"},
    KnownError{"READONLY", Cause::read_only, use_masters},
    KnownError{"MASTERDOWN", Cause::master_down, use_masters},
    KnownError{"NOREPLICAS", Cause::too_few_replicas,
               "; set min-replicas-to-write 0: lock nodes have none"},
    KnownError{"MOVED", Cause::moved, leave_cluster},
    KnownError{"ASK", Cause::moved, leave_cluster},
    KnownError{"CLUSTERDOWN", Cause::moved, leave_cluster},
    KnownError{"NOAUTH", Cause::authentication,
               "; give its user and password in the URI, or a password file"},
    KnownError{"WRONGPASS", Cause::authentication, "; correct the URI or the password file"},
    KnownError{
        "DENIED", Cause::permission,
        "; its default user is on without a password, so protected-mode keeps other machines "
        "out: turn that user off, as cluster/users.acl does"},
    KnownError{"NOPERM", Cause::permission},
    KnownError{"WRONGTYPE", Cause::server_error,
               "; a key of redlock:* there is another program's: find its writer, and delete it"},
    KnownError{"NOMARKER", Cause::marker_missing},
    KnownError{"HASMARKER", Cause::incompatible},
    KnownError{"OTHERSET", Cause::quarantined},
};

// Of redlock_layout.
constexpr std::string_view every_key = "~redlock:*";
constexpr std::string_view inside_script = "user_script:";
constexpr std::string_view too_many_clients = "ERR max number of clients";
// To a client, and to a script: "Unknown Redis command called from script", where Redict says its
// own name and Valkey none, and Redis 6.2 says "Lua script".
constexpr std::string_view unknown_command = "unknown command";
constexpr std::string_view unknown_to_script = "command called from ";
constexpr std::array refusals_inside_script{
    std::string_view{"The user executing the script "},
    std::string_view{"ACL failure in script: "},
};

// The error of the command inside the script alone. (Redis 6.2 has the line of the script in front
// also where the script gives the error of a command as its own.)
std::string_view unwrap(std::string_view error) {
  if (!error.starts_with("ERR Error running script") && !error.starts_with("@user_script:")) {
    // The error's own words may speak of a script, too.
    const std::size_t line = error.rfind(", on @user_script:");
    if (line == std::string_view::npos) return error;
    return error.substr(0, error.rfind(" script: ", line));
  }
  const std::size_t at = error.rfind(inside_script);
  if (at == std::string_view::npos) return error;
  std::string_view inner = error.substr(at + inside_script.size());
  const std::size_t start = inner.find_first_not_of("0123456789: -");
  return start == std::string_view::npos ? error : inner.substr(start);
}

bool has_prefix(std::string_view text, std::string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() || text[word.size()] == ' ' || text[word.size()] == '\r');
}

bool is_unknown_command(std::string_view inner) {
  constexpr std::string_view general = "ERR ";
  if (inner.starts_with(general)) inner.remove_prefix(general.size());
  return inner.starts_with(unknown_command) ||
         (inner.starts_with("Unknown ") && inner.find(unknown_to_script) != std::string_view::npos);
}

bool is_refusal_inside_script(std::string_view inner) {
  constexpr std::string_view general = "ERR ";
  if (inner.starts_with(general)) inner.remove_prefix(general.size());
  return std::any_of(refusals_inside_script.begin(), refusals_inside_script.end(),
                     [&](std::string_view words) { return inner.starts_with(words); });
}

// The text between these two, or none.
std::string_view between(std::string_view text, std::string_view before, char after) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  const std::size_t end = text.find(after);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end);
}

// The command that this line of the script calls. Each line of ours calls one at most.
std::string_view command_at(std::string_view script, std::string_view error) {
  const std::size_t at = error.find(inside_script);
  if (at == std::string_view::npos) return {};
  const std::string_view digits = error.substr(at + inside_script.size());
  std::size_t line = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), line);
  for (; line > 1 && !script.empty(); --line) {
    script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
  }
  return between(script.substr(0, script.find('\n')), "call('", '\'');
}

bool is_command(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalpha(c) != 0 || c == '|' || c == '-';
  });
}

// The right that the user lacks, as ACL SETUSER spells it; empty if the reply does not show it.
std::string missing_right(std::string_view error, std::string_view text, std::string_view script) {
  if (text.find(" channel") != std::string_view::npos) {
    return "&" + redlock_layout.channel("*");
  }
  if (text.find(" key") != std::string_view::npos) return std::string(every_key);
  std::string_view command = between(text, "run the '", '\'');
  if (!is_command(command)) command = between(text, "(", ')');  // added by the script
  if (!is_command(command)) command = command_at(script, error);
  if (!is_command(command)) return {};
  std::string right = "+";
  for (const char c : command) {
    right += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return right;
}

/// Behind the server's own words, of which some end with a full stop.
void advise(std::string& text, std::string_view remedy) {
  if (remedy.empty()) return;
  if (text.ends_with('.') && !text.ends_with("...")) text.pop_back();
  text += remedy;
}

void mask(std::string& text, const Secrets& secrets) {
  for (const std::string& word : secrets.words()) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
      text.replace(at, word.size(), "***");
      at += 3;
    }
  }
}

}  // namespace

bool is_no_script(std::string_view error) {
  return has_prefix(error, "NOSCRIPT");
}

engine::Unavailable to_unavailable(std::string_view error, const Secrets& secrets,
                                   std::string_view script) {
  std::string_view inner = unwrap(error);
  if (is_unknown_command(inner)) inner = inner.substr(0, inner.find(", with args"));
  std::string text = printable(inner, secrets);
  if (text.empty()) text = "an error without a text";
  const bool denied = has_prefix(inner, "NOPERM") || is_refusal_inside_script(inner);
  // From the masked text: a node may call a password a command.
  const std::string right = denied ? missing_right(error, text, script) : std::string();
  if (!right.empty()) advise(text, "; permit " + printable(right, secrets));
  if (denied && right.empty()) advise(text, "; give its user the rights of cluster/users.acl");
  for (const KnownError& entry : known) {
    if (!has_prefix(inner, entry.prefix)) continue;
    // A permission that only a later command of the script lacks is noticed after the first wrote.
    const bool late =
        entry.cause == Cause::permission && error.find(inside_script) != std::string_view::npos;
    advise(text, entry.remedy);
    return {entry.cause, late ? engine::Delivery::unknown : engine::Delivery::refused,
            std::move(text)};
  }
  if (denied) return {Cause::permission, engine::Delivery::unknown, std::move(text)};
  if (is_unknown_command(inner)) {
    // Of a script it may be one of the later commands.
    const bool late = error.find(inside_script) != std::string_view::npos ||
                      inner.find(unknown_to_script) != std::string_view::npos;
    advise(text, do_not_rename);
    return {Cause::permission, late ? engine::Delivery::unknown : engine::Delivery::refused,
            std::move(text)};
  }
  if (inner.starts_with(too_many_clients)) advise(text, "; raise maxclients");
  const bool ours = inner.starts_with("ERR redlock: ");
  return {Cause::server_error, ours ? engine::Delivery::refused : engine::Delivery::unknown,
          std::move(text)};
}

std::string printable(std::string_view text, const Secrets& secrets) {
  constexpr std::size_t longest = 200;
  std::string masked(text);
  mask(masked, secrets);
  masked.erase(masked.find_last_not_of(" \r\n") + 1);
  return text::visible(masked, longest);
}

bool is_of_renamed(std::string_view detail) {
  return detail.ends_with(do_not_rename);
}

}  // namespace redlock::wire
