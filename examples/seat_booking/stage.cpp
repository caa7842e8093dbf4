// SPDX-License-Identifier: MIT
// Customers speak through a pipe, one line at a time: when, what kind of thing, and what in words,
// separated by tabs. A line without words is received but not printed.
#include "stage.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace seat_booking {

namespace {

constexpr auto patience = std::chrono::seconds(30);

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw StoryError("the system gives no pipe");
  return ends;
}

pid_t start(std::vector<std::string> arguments, int input, int output) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw StoryError("the system starts no process");
  return pid;
}

}  // namespace

Stage::~Stage() {
  for (auto& [who, actor] : actors_) {
    close_ends(actor);
    if (actor.pid < 0) continue;
    ::kill(actor.pid, SIGKILL);
    ::waitpid(actor.pid, nullptr, 0);
  }
}

void Stage::enter(const std::string& who, std::vector<std::string> arguments) {
  const auto to = make_pipe();
  const auto from = make_pipe();
  arguments.insert(arguments.begin(), {"seat_booking", "--customer", who});
  Actor actor;
  actor.pid = start(std::move(arguments), to[0], from[1]);
  actor.to = to[1];
  actor.from = from[0];
  ::close(to[0]);
  ::close(from[1]);
  actors_[who] = std::move(actor);
}

Stage::Actor& Stage::actor(const std::string& who) {
  return actors_.at(who);
}

std::string Stage::await(const std::string& who, const std::vector<std::string>& kinds) {
  const auto deadline = redlock::BootClock::now() + patience;
  while (true) {
    auto& said = actor(who).said;
    const auto found = std::ranges::find_if(
        said, [&](const Said& line) { return std::ranges::count(kinds, line.kind) > 0; });
    if (found != said.end()) {
      const std::string kind = found->kind;
      text_ = found->text;
      said.erase(found);
      return kind;
    }
    if (actor(who).from < 0 || redlock::BootClock::now() > deadline) {
      throw StoryError(who + " should have come to \"" + kinds.front() + "\" and did not");
    }
    listen();
  }
}

void Stage::tell(const std::string& who) {
  if (::write(actor(who).to, "\n", 1) != 1) throw StoryError(who + " does not listen any more");
}

void Stage::signal(const std::string& who, int number) {
  ::kill(actor(who).pid, number);
}

void Stage::await_stopped(const std::string& who) {
  int status = 0;
  if (::waitpid(actor(who).pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status)) {
    throw StoryError(who + " should have been stopped by SIGSTOP");
  }
}

void Stage::await_exit(const std::string& who) {
  while (actor(who).from >= 0) listen();
  int status = 0;
  ::waitpid(actor(who).pid, &status, 0);
  actor(who).pid = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw StoryError(who + " ended badly");
}

void Stage::listen() {
  std::vector<pollfd> polled;
  std::vector<std::string> names;
  for (const auto& [who, actor] : actors_) {
    if (actor.from < 0) continue;
    polled.push_back({actor.from, POLLIN, 0});
    names.push_back(who);
  }
  ::poll(polled.data(), polled.size(), 20);
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) read_from(names[i], actor(names[i]));
  }
  timeline_.print_settled();
}

void Stage::read_from(const std::string& who, Actor& actor) {
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(actor.from, buffer.data(), buffer.size());
  if (size <= 0) return close_ends(actor);
  actor.unread.append(buffer.data(), static_cast<std::size_t>(size));
  for (auto end = actor.unread.find('\n'); end != std::string::npos;
       end = actor.unread.find('\n')) {
    receive_line(who, actor, std::string_view(actor.unread).substr(0, end));
    actor.unread.erase(0, end + 1);
  }
}

void Stage::receive_line(const std::string& who, Actor& actor, std::string_view line) {
  const auto first = line.find('\t');
  const auto second = line.find('\t', first + 1);
  if (second == std::string_view::npos) throw StoryError(who + " says something unheard-of");
  redlock::BootClock::rep when = 0;
  std::from_chars(line.data(), line.data() + first, when);
  const std::string kind(line.substr(first + 1, second - first - 1));
  const std::string text(line.substr(second + 1));
  actor.said.push_back({kind, text});
  if (kind.starts_with('.')) return;
  timeline_.add(Timeline::Instant(redlock::BootClock::duration(when)), who, text);
}

void Stage::close_ends(Actor& actor) {
  for (int* end : {&actor.to, &actor.from}) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
}

}  // namespace seat_booking
