// SPDX-License-Identifier: MIT
// Runs the real redlock command: its arguments, its environment, its stdin, what it prints, its
// exit status. What a test starts here is killed when the test program ends, however it ends.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <poll.h>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cluster/fleet.hpp"
#include "cluster/unique_fd.hpp"
#include "support/nodes.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

namespace redlock::testing {

using namespace std::chrono_literals;
using cluster::Fleet;
using cluster::Persistence;
using cluster::UniqueFd;
using nlohmann::json;
using std::chrono::milliseconds;
using Arguments = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

inline std::string command_path() {
  return std::string(REDLOCK_BIN_DIR) + "/redlock";
}

/// The subcommands by which an operator asks all nodes. On members of a set they change no lock.
inline const std::vector<Arguments> looks{
    {"doctor"}, {"status", "a"}, {"waiters", "a"}, {"list"}, {"adopt"}};

inline Arguments appended(Arguments words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// With a node timeout, unless they have one: a busy machine must not look like a node that is
/// gone.
inline Arguments patient(Arguments arguments) {
  if (std::ranges::find(arguments, "--node-timeout") == arguments.end()) {
    const auto words = arguments.front() == "set" ? 2 : 1;
    arguments.insert(arguments.begin() + words, {"--node-timeout", "10s"});
  }
  return arguments;
}

/// redlock exec of a command under the lock a.
inline Arguments exec_a(const Arguments& options, const Arguments& command) {
  return appended(appended(appended({"exec", "a"}, options), {"--"}), command);
}

/// The nodes, as the command takes them from the environment. They are as new as the test.
inline Variables nodes_variable(const std::vector<std::string>& uris) {
  std::string list;
  for (const auto& uri : uris) list += (list.empty() ? "" : ",") + uri;
  return {{"REDLOCK_NODES", list}, {"REDLOCK_QUARANTINE", "off"}};
}
/// As clients have it: without quarantine a node that has a marker is refused for that.
inline const Variables with_quarantine{{"REDLOCK_QUARANTINE", "on"}};
/// Where `others` name the same variable, they win.
inline Variables variables_of(const Fleet& fleet, Variables others = {}) {
  others.merge(nodes_variable(fleet.uris()));
  return others;
}

/// For a forked child: tests that run under nohup, or behind a shell's &, were started with signals
/// ignored that the command is to end by.
inline void stop_ignoring_signals() {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) ::signal(number, SIG_DFL);
}

/// What a command that ended leaves. `status` as a shell has it: the exit code, or 128 + signal.
struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

/// A redlock command under way.
class Running {
 public:
  explicit Running(const Arguments& arguments, const Variables& variables = {},
                   const std::string& program = command_path()) {
    std::array<UniqueFd, 3> theirs;
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<int, 2> ends{};
      REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
      ours_[i] = UniqueFd(ends[i == 0 ? 1 : 0]);
      theirs[i] = UniqueFd(ends[i == 0 ? 0 : 1]);
    }
    const auto argv = appended({program}, arguments);
    const auto environment = environment_of(variables);
    auto argv_pointers = pointers(argv);
    auto environment_pointers = pointers(environment);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      stop_ignoring_signals();
      for (int i = 0; i < 3; ++i) ::dup2(theirs[static_cast<std::size_t>(i)].get(), i);
      ::execve(program.c_str(), argv_pointers.data(), environment_pointers.data());
      ::_exit(99);
    }
  }
  /// Patiently, on the nodes of a fleet.
  Running(const Fleet& fleet, const Arguments& arguments)
      : Running(patient(arguments), variables_of(fleet)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { REQUIRE(::kill(pid_, number) == 0); }

  /// Writes to its stdin. A command that has ended by then, refused say, need not have read it.
  void write(std::string_view text) const {
    sigset_t broken_pipe;
    sigset_t before;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
    const auto written = ::write(ours_[0].get(), text.data(), text.size());
    const bool has_ended = written < 0 && errno == EPIPE;
    constexpr timespec at_once{};
    if (has_ended) ::sigtimedwait(&broken_pipe, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    REQUIRE((has_ended || written == static_cast<ssize_t>(text.size())));
  }
  void close_stdin() { ours_[0].reset(); }
  /// From now on nobody reads what it prints.
  void close_stdout() { ours_[1].reset(); }

  /// Waits until it has printed this; false if it has not within half a minute, or ended before.
  bool await_out(const std::string& text) { return await(out_, text); }
  bool await_err(const std::string& text) { return await(err_, text); }
  /// The same for so many lines.
  bool await_out_lines(std::size_t count) { return await_lines(out_, count); }
  bool await_err_lines(std::size_t count) { return await_lines(err_, count); }
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }

  /// Waits for its end, and for the end of everything that holds its stdout or stderr.
  Finished wait() {
    ours_[0].reset();
    while (read_some()) {
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return {code, out_, err_};
  }

 private:
  // Of this program's variables only what any command needs: a test says the rest.
  static std::vector<std::string> environment_of(const Variables& variables) {
    Variables all{{"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}, {"HOME", "/"}};
    for (const auto* name :
         {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "REDLOCK_REDIS_SERVER", "TMPDIR"}) {
      if (const char* value = std::getenv(name); value != nullptr) all[name] = value;
    }
    for (const auto& [name, value] : variables) all[name] = value;
    std::vector<std::string> texts;
    for (const auto& [name, value] : all) texts.push_back(name + "=" + value);
    return texts;
  }

  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  }

  bool await(const std::string& where, const std::string& text) {
    while (where.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }

  bool await_lines(const std::string& where, std::size_t count) {
    while (static_cast<std::size_t>(std::ranges::count(where, '\n')) < count) {
      if (!read_some()) return false;
    }
    return true;
  }

  // False when both are closed, or nothing came for half a minute.
  bool read_some() {
    std::array<pollfd, 2> polled{{{ours_[1].get(), POLLIN, 0}, {ours_[2].get(), POLLIN, 0}}};
    if (!ours_[1] && !ours_[2]) return false;
    if (::poll(polled.data(), polled.size(), 30'000) <= 0) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const auto count = ::read(ours_[i + 1].get(), buffer.data(), buffer.size());
      if (count > 0) {
        (i == 0 ? out_ : err_).append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        ours_[i + 1].reset();
      }
    }
    return true;
  }

  pid_t pid_ = -1;
  std::array<UniqueFd, 3> ours_;  // the other ends of its stdin, stdout and stderr
  std::string out_;
  std::string err_;
};

/// The process that a command under way has printed behind this word, on its first line.
inline pid_t printed_pid(Running& running, const std::string& word = "pid") {
  REQUIRE(running.await_out_lines(1));
  const auto at = running.out().find(word + " ");
  REQUIRE(at != std::string::npos);
  return static_cast<pid_t>(std::stol(running.out().substr(at + word.size() + 1)));
}

inline Finished redlock(const Arguments& arguments, const Variables& variables = {}) {
  return Running(arguments, variables).wait();
}
inline Finished redlock(const Fleet& fleet, const Arguments& arguments,
                        const Variables& variables = {}) {
  return redlock(patient(arguments), variables_of(fleet, variables));
}

/// The same, once its status has been checked.
inline Finished exits_with(int status, Finished finished) {
  CAPTURE(finished.out);
  CAPTURE(finished.err);
  CHECK(finished.status == status);
  return finished;
}

inline void check_contains(const std::string& text, const std::vector<std::string>& parts) {
  CAPTURE(text);
  for (const auto& part : parts) CHECK_MESSAGE(contains(text, part), part);
}

inline json in_json(const Fleet& fleet, const Arguments& arguments,
                    const Variables& variables = {}) {
  return json::parse(redlock(fleet, appended(arguments, {"-o", "json"}), variables).out);
}

/// The object has these members, and others. Members of members are written "/nodes/0/state".
inline void check_members(const json& object, const json& members) {
  CAPTURE(object.dump());
  for (const auto& member : members.items()) {
    CAPTURE(member.key());
    CHECK(object.value(json::json_pointer(member.key()), json("missing")) == member.value());
  }
}

/// By SIGSTOP, or the terminal's Ctrl-Z. Its name has no blank in it.
inline bool is_stopped(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  stat >> number >> name >> state;
  return state == "T";
}

/// A line for sh, with the nodes in its environment.
inline Running in_shell(const Fleet& fleet, const std::string& line, const Arguments& words = {}) {
  return Running(appended({"-c", line}, words), variables_of(fleet), "/bin/sh");
}

/// What a test case begins with: new nodes, and the command on them.
template <std::size_t count>
struct Nodes {
  [[nodiscard]] Finished run(const Arguments& arguments, const Variables& variables = {}) const {
    return redlock(fleet, arguments, variables);
  }
  [[nodiscard]] Finished exec(const Arguments& options, const Arguments& command,
                              const Variables& variables = {}) const {
    return run(exec_a(options, command), variables);
  }
  [[nodiscard]] json run_json(const Arguments& arguments) const {
    return in_json(fleet, arguments);
  }
  [[nodiscard]] std::size_t nodes_with_lock(const std::string& name = "a") const {
    return testing::nodes_with_lock(fleet, name);
  }

  Fleet fleet{{.nodes = count}};
};
using OneNode = Nodes<1>;
using ThreeNodes = Nodes<3>;

/// A command that holds the lock a until it is told to let go.
class Holder : public Running {
 public:
  explicit Holder(const Fleet& fleet, const Arguments& options = {})
      : Running(fleet, exec_a(options, {"sh", "-c", "echo held; read line"})) {
    REQUIRE(await_out("held"));
  }
  void let_go() {
    write("go\n");
    CHECK(wait().status == 0);
  }
};

/// "owner=abc" in "owner=abc token=1": abc; empty if there is no such field.
inline std::string field(const std::string& line, const std::string& name) {
  const auto at = line.find(name + "=");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 1;
  return line.substr(begin, line.find_first_of(" \n", begin) - begin);
}

/// Prose that was broken into lines, on one: a line that is indented continues the one before it.
inline std::string unwrapped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\n  ") == 0) {
      while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
      result += ' ';
    } else {
      result += text[i];
    }
  }
  return result;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

/// How many a terminal shows, each one column wide.
inline std::size_t characters_in(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

inline std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace redlock::testing
