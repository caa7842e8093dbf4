// SPDX-License-Identifier: MIT
// redlock fence: lets a command write to a file only if no larger token has been used before.
#include <cerrno>
#include <cstdlib>
#include <fmt/core.h>
#include <system_error>
#include <unistd.h>

#include <redlock/options.hpp>

#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/redlock/fence_record.hpp"
#include "cli/redlock/subcommands.hpp"
#include "cli/secrets.hpp"

namespace redlock::cli {
namespace {

constexpr auto* fence_footer = R"help(
For files (and anything else that a path names) that are written under a lock. The token is recorded
beside FILE, in FILE.fence, before CMD starts. When a smaller token comes later, CMD is not run and
redlock exits 77: the lease behind that token is over, and another holder has worked on FILE since.
The same token may come again. Every program that writes to FILE has to go through redlock fence.

CMD runs alone: other writers wait until CMD has ended, and any process that it left in the
background, unless that process closes the descriptors that it inherited, as some daemons do. Let
CMD itself read what it is going to change: data that was read earlier may have changed since. CMD
replaces redlock, so signals and the exit status are those of CMD.

The record is on the disk before CMD starts, and complete at any moment, whatever is killed. FILE
need not exist; its directory must, on a local file system where redlock may write. Symbolic links
to FILE are followed; hard links, and links in place of FILE.fence, are not. Never delete FILE.fence
or FILE.fence.lock while there are writers.

The environment of CMD has REDLOCK_TOKEN, and no REDLOCK_NODES if that contains a password.

Exit status: that of CMD; 77 the token is older than FILE's; 75 FILE was in use for all of --wait;
64 usage; 125 the record cannot be read or written; 126 CMD cannot be run, 127 CMD not found.

Examples:
  redlock exec report -- redlock fence report.csv -- ./add-line.sh report.csv
  redlock exec report -- sh -c './compute.sh >new && redlock fence all -- ./merge.sh new all'
  redlock fence notes.txt --token 17 --wait 10s -- vi notes.txt)help";

class Fence {
 public:
  Fence(CLI::App& app, const Invocation& invocation) : invocation_(invocation) {
    app.add_option("FILE", file_, "The file that CMD writes to")->required();
    app.add_option("--token", token_text_, "The lock's token; default $REDLOCK_TOKEN")
        ->option_text("TOKEN");
    add_duration_option(app, "--wait", wait_, Zero::allowed, Forever::allowed,
                        "How long to wait while FILE is in use: a duration, forever (default), or "
                        "0: not at all");
  }

  int run() {
    check();
    const std::uint64_t token = find_token();
    FenceRecord record(file_);
    if (!record.lock(wait_.value_or(forever))) {
      throw Exit(exit_contended,
                 fmt::format("{} is in use by another redlock fence", record.file().string()));
    }
    const auto seen = record.token();
    if (seen && *seen > token) {
      throw Exit(exit_stale, fmt::format("token {} is too old: {} has seen {}; the lease behind it "
                                         "is over",
                                         token, record.file().string(), *seen));
    }
    // Also if the token is in the file already: its writer may have been killed before fsync.
    record.stamp(token);
    record.keep_locked();
    become_command(token);
  }

 private:
  void check() const {
    if (file_.empty()) throw Exit(exit_usage, "FILE is empty; say which file CMD writes to");
    if (invocation_.command && !invocation_.command->empty()) return;
    throw Exit(exit_usage, fmt::format("which command? Put it behind --, for example: redlock "
                                       "fence {} -- ./job.sh",
                                       printable(file_)));
  }

  std::uint64_t find_token() const {
    const char* const variable = std::getenv("REDLOCK_TOKEN");
    const std::string text = token_text_.value_or(variable != nullptr ? variable : "");
    const char* const where = token_text_ ? "--token" : "REDLOCK_TOKEN";
    if (!token_text_ && text.empty()) {
      throw Exit(exit_usage, "no token: run redlock fence under redlock exec, or say --token");
    }
    if (const auto token = parse_token(text)) return *token;
    throw Exit(exit_usage, fmt::format("{} is '{}', which is not a token: a decimal number from 1 "
                                       "to 2^53 - 1",
                                       where, text));
  }

  [[noreturn]] void become_command(std::uint64_t token) const {
    ::setenv("REDLOCK_TOKEN", std::to_string(token).c_str(), 1);
    if (has_password(invocation_.nodes_variable)) ::unsetenv("REDLOCK_NODES");
    std::vector<char*> arguments;
    // exec does not change them; its signature is older than const.
    for (const auto& text : *invocation_.command) {
      arguments.push_back(const_cast<char*>(text.c_str()));
    }
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const int why = errno;
    throw Exit(
        why == ENOENT ? exit_not_found : exit_cannot_run,
        fmt::format("cannot run '{}': {}", arguments[0], std::generic_category().message(why)));
  }

  const Invocation& invocation_;
  std::string file_;
  std::optional<std::string> token_text_;
  std::optional<std::chrono::milliseconds> wait_;
};

}  // namespace

void add_fence(CLI::App& app, Invocation& invocation) {
  add_command<Fence>(app, invocation,
                     {"fence", "Run a command on a file unless its token is too old",
                      "redlock fence FILE [OPTIONS] -- CMD [ARG...]", fence_footer});
}

}  // namespace redlock::cli
