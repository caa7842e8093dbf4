// SPDX-License-Identifier: MIT
//
// The reaper is a shell script, so that it shares no memory, descriptor or sanitizer runtime with
// the program it watches, and so that the library needs no second executable.
#include "reaper.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/core.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fleet_error.hpp"

namespace redlock::cluster {
namespace {

// `read` ends with a line ("let go") or with the end of the socket (the program is gone). Killing
// the group kills this shell too; so the killing is done by a child in a session of its own, while
// this shell, by staying, keeps the group's number taken. A write that was under way in a killed
// server may still add a file while rm works, hence the second and third attempt.
constexpr const char* kScript = R"(
trap '' HUP INT TERM QUIT
cd /
if read -r word; then exit 0; fi
setsid sh -c '
  kill -s KILL -- "-$1"
  [ -n "$2" ] || exit 0
  for attempt in 1 2 3 4 5; do rm -rf -- "$2" && exit 0; sleep 0.1; done
' redlock-fleet-reaper "$$" "$1"
exit 0
)";

std::pair<UniqueFd, UniqueFd> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw FleetError(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Reaper::Reaper(const std::filesystem::path& directory) : Reaper(directory, connected_pair()) {}

Reaper::Reaper(const std::filesystem::path& directory, std::pair<UniqueFd, UniqueFd> ends)
    : owner_(::getpid()),
      our_end_(std::move(ends.first)),
      process_(Process::spawn(
          {.argv = {"/bin/sh", "-c", kScript, "redlock-fleet-reaper", directory.string()},
           .standard_input = ends.second.get()})) {}

void Reaper::let_go() {
  constexpr std::string_view line = "let go\n";
  ::send(our_end_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  process_.await_end(std::chrono::seconds(10));
  let_go_ = true;
}

Reaper::~Reaper() {
  if (let_go_ || !is_ours()) return;
  ::kill(-group(), SIGKILL);
  process_.await_end(std::chrono::seconds(10));
}

}  // namespace redlock::cluster
