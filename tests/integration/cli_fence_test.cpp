// SPDX-License-Identifier: MIT
// redlock fence: who is let through to a file, that one works at a time, and that the record beside
// the file is whole and durable whatever is killed.
#include <list>

#include "cli_process.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;

/// A file in a directory of its own, and what redlock fence does to it.
struct FencedFile {
  [[nodiscard]] std::string path() const { return (place.path() / "file").string(); }
  [[nodiscard]] std::string record() const { return text(path() + ".fence"); }
  static std::string text(const std::string& file) { return text_in(file); }
  [[nodiscard]] Arguments fence(std::uint64_t token, const Arguments& cmd) const {
    Arguments all{"fence", path(), "--token", std::to_string(token), "--"};
    all.insert(all.end(), cmd.begin(), cmd.end());
    return all;
  }
  [[nodiscard]] Finished shell(std::uint64_t token, const std::string& script) const {
    return redlock(fence(token, {"sh", "-c", script}));
  }
  /// Another command, which does not wait.
  [[nodiscard]] Finished intrude(std::uint64_t token) const {
    return redlock(
        {"fence", path(), "--token", std::to_string(token), "--wait", "0", "--", "true"});
  }

  TemporaryDirectory place;
};

TEST_CASE("a file that nobody has written to lets any token through, and keeps it") {
  const FencedFile file;
  const auto finished = file.shell(7, "echo $REDLOCK_TOKEN; cat " + file.path() + ".fence");
  CHECK(finished.status == 0);
  CHECK(finished.out == "7\n7\n");  // the record stands before the command starts
  CHECK(finished.err == "");
  CHECK(file.record() == "7\n");
}

TEST_CASE("an older token is refused with 77 and the command not run; the same may come again") {
  const FencedFile file;
  CHECK(file.shell(7, "true").status == 0);
  const auto refused = file.shell(6, "echo ran");
  CHECK(refused.status == 77);
  CHECK(refused.out == "");
  CHECK(refused.err == "redlock: token 6 is too old: " + fs::canonical(file.place.path()).string() +
                           "/file has seen 7; the lease behind it is over\n");
  CHECK(file.record() == "7\n");
  CHECK(file.shell(7, "true").status == 0);
  CHECK(file.shell(8, "true").status == 0);
  CHECK(file.record() == "8\n");
}

TEST_CASE("tokens are compared as numbers, up to the last one that there is") {
  const FencedFile file;
  CHECK(file.shell(99, "true").status == 0);
  CHECK(file.shell(100, "true").status == 0);
  CHECK(file.shell(9'007'199'254'740'991, "true").status == 0);
  CHECK(file.shell(9'007'199'254'740'990, "true").status == 77);
}

TEST_CASE("the command takes redlock's place: status, signals, stdin") {
  const FencedFile file;
  CHECK(file.shell(1, "exit 5").status == 5);
  CHECK(file.shell(1, "kill -KILL $$").status == 128 + SIGKILL);
  CHECK(redlock(file.fence(1, {"/nowhere/command"})).status == 127);
  CHECK(redlock(file.fence(1, {"/etc/passwd"})).status == 126);
  Running running(file.fence(1, {"sh", "-c", "echo pid $$; cat; wait; exec sleep 1000"}));
  REQUIRE(running.await_out("\n"));
  CHECK(running.out() == "pid " + std::to_string(running.pid()) + "\n");
  running.write("word\n");
  CHECK(running.await_out("word"));
  running.signal(SIGTERM);
  CHECK(running.wait().status == 128 + SIGTERM);
}

TEST_CASE("one command works at a time; who does not wait is told with 75") {
  const FencedFile file;
  Running first(file.fence(1, {"sh", "-c", "echo in; read line"}));
  REQUIRE(first.await_out("in"));
  const auto busy = file.intrude(2);
  CHECK(busy.status == 75);
  CHECK(contains(busy.err, "in use"));
  CHECK(file.record() == "1\n");
  Running second(file.fence(2, {"cat", file.path()}));
  first.write("go\n");
  CHECK(first.wait().status == 0);
  CHECK(second.wait().status == 1);  // nothing was written; it came in all the same
  CHECK(file.record() == "2\n");
}

TEST_CASE("a command that closes every descriptor is alone all the same, until it is killed") {
  const FencedFile file;
  Running running(
      file.fence(1, {"bash", "-c",
                     "for f in /proc/$$/fd/*; do f=${f##*/}; [ $f -lt 3 ] || eval \"exec $f>&-\"; "
                     "done; echo in; read line"}));
  REQUIRE(running.await_out("in"));
  CHECK(file.intrude(2).status == 75);
  running.signal(SIGKILL);
  CHECK(running.wait().status == 128 + SIGKILL);
  CHECK(file.shell(2, "true").status == 0);
}

TEST_CASE("whoever stops and kills a command that closed every descriptor leaves no lock behind") {
  const FencedFile file;
  auto arguments = file.fence(1, {"bash", "-c",
                                  "for f in /proc/$$/fd/*; do f=${f##*/}; [ $f -lt 3 ] || "
                                  "eval \"exec $f>&-\"; done; echo in; read line"});
  arguments.insert(arguments.begin(), command_path());
  Running running(arguments, {}, "/usr/bin/setsid");
  REQUIRE(running.await_out("in"));
  REQUIRE(::kill(-running.pid(), SIGSTOP) == 0);
  running.signal(SIGKILL);
  CHECK(running.wait().status == 128 + SIGKILL);
  CHECK(redlock({"fence", file.path(), "--token", "2", "--wait", "30s", "--", "true"}).status == 0);
}

TEST_CASE("what the command leaves running keeps others out as well") {
  const FencedFile file;
  Running left(file.fence(2, {"sh", "-c", "sleep 60 </dev/null >/dev/null 2>&1 & echo $!"}));
  const auto finished = left.wait();
  CHECK(finished.status == 0);
  CHECK(file.intrude(3).status == 75);
  ::kill(static_cast<pid_t>(std::stol(finished.out)), SIGKILL);
  CHECK(file.shell(3, "true").status == 0);
}

TEST_CASE("processes that come at once: every write that was let through counts") {
  const FencedFile file;
  std::ofstream(file.path()) << "0\n";
  const std::string script = "n=$(cat " + file.path() + "); echo $((n + 1)) >" + file.path();
  std::list<Running> all;
  // In an order in which some come too late.
  for (const std::uint64_t token : {3U, 1U, 4U, 2U, 6U, 5U, 8U, 7U, 9U, 9U, 9U, 10U}) {
    all.emplace_back(file.fence(token, {"sh", "-c", script}));
  }
  int written = 0;
  for (Running& running : all) {
    const int status = running.wait().status;
    CHECK((status == 0 || status == 77));
    written += status == 0 ? 1 : 0;
  }
  CHECK(file.text(file.path()) == std::to_string(written) + "\n");
  CHECK(file.record() == "10\n");
}

TEST_CASE("a link to the file is the file") {
  const FencedFile file;
  std::ofstream(file.path()) << "";
  const auto link = (file.place.path() / "link").string();
  fs::create_symlink("file", link);
  CHECK(file.shell(5, "true").status == 0);
  CHECK(redlock({"fence", link, "--token", "4", "--", "true"}).status == 77);
  CHECK_FALSE(fs::exists(link + ".fence"));
}

TEST_CASE("links and pipes beside the file are no trap") {
  const FencedFile file;
  const auto precious = (file.place.path() / "precious").string();
  std::ofstream(precious) << "7\n";
  const std::string record = file.path() + ".fence";
  fs::create_symlink(precious, record + ".new");
  CHECK(file.shell(9, "true").status == 0);
  CHECK(file.record() == "9\n");
  CHECK_FALSE(fs::is_symlink(record));
  REQUIRE(::mkfifo((record + ".new").c_str(), 0600) == 0);
  CHECK(file.shell(9, "true").status == 0);
  CHECK(file.record() == "9\n");

  const auto refuses = [&](const std::string& link) {
    fs::remove(link);
    fs::create_symlink(precious, link);
    const auto finished = file.shell(9, "echo ran");
    CHECK(finished.status == 125);
    CHECK(finished.out == "");
    CHECK(contains(finished.err, link.substr(link.rfind('/'))));
    CHECK(fs::is_symlink(link));
    fs::remove(link);
  };
  refuses(record);
  refuses(record + ".lock");
  CHECK(file.text(precious) == "7\n");
}

TEST_CASE("when the disk is full the old record stands and the command is not run") {
  const FencedFile file;
  CHECK(file.shell(7, "true").status == 0);
  // Whatever is written finds no room; the signal that would end the process is ignored.
  const auto finished =
      Running({"-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", command_path(), "fence",
               file.path(), "--token", "8", "--", "echo", "ran"},
              {}, "/bin/sh")
          .wait();
  CHECK(finished.status == 125);
  CHECK(finished.out == "");
  CHECK(contains(finished.err, "file.fence.new"));
  CHECK(file.record() == "7\n");
  CHECK(file.shell(8, "true").status == 0);
}

TEST_CASE("under redlock exec the token is that of the lock") {
  const FencedFile file;
  const cluster::Fleet fleet({.nodes = 3});
  const Arguments arguments{
      "exec", "a",  "--node-timeout",     "10s", "--", command_path(), "fence", file.path(), "--",
      "sh",   "-c", "echo $REDLOCK_TOKEN"};
  const auto first = redlock(arguments, nodes_variable(fleet.uris()));
  CHECK(first.status == 0);
  CHECK(file.record() == first.out);
  const auto second = redlock(arguments, nodes_variable(fleet.uris()));
  CHECK(std::stoull(second.out) > std::stoull(first.out));
  CHECK(redlock({"fence", file.path(), "--", "true"},
                {{"REDLOCK_TOKEN", std::to_string(std::stoull(first.out))}})
            .status == 77);
}

TEST_CASE("a damaged record lets nobody through") {
  const FencedFile file;
  const std::string long_number(100, '0');
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("0\n"), std::string("-1\n"),
        std::string("7 8\n"), std::string("x"), std::string("9007199254740992\n"),
        long_number.substr(0, 63) + "79"}) {
    CAPTURE(text);
    std::ofstream(file.path() + ".fence") << text;
    const auto finished = file.shell(9, "echo ran");
    CHECK(finished.status == 125);
    CHECK(finished.out == "");
    CHECK(contains(finished.err, "damaged"));
    CHECK(file.record() == text);
  }
}

TEST_CASE("what cannot work is refused with one sentence") {
  const FencedFile file;
  const auto refuses = [&](const Arguments& arguments, const std::string& sentence,
                           const Variables& variables = {}) {
    const auto finished = redlock(arguments, variables);
    CAPTURE(finished.err);
    CHECK(finished.status == 64);
    CHECK(contains(finished.err, sentence));
    CHECK(occurrences(finished.err, "\n") == 1);
  };
  refuses({"fence"}, "FILE");
  refuses({"fence", file.path(), "--token", "1"}, "behind --");
  refuses({"fence", file.path(), "--token", "1", "--"}, "behind --");
  refuses({"fence", file.path(), "--", "true"}, "redlock exec");
  refuses({"fence", file.path(), "--", "true"}, "redlock exec", {{"REDLOCK_TOKEN", ""}});
  refuses({"fence", file.path(), "--", "true"}, "REDLOCK_TOKEN is 'x'", {{"REDLOCK_TOKEN", "x"}});
  for (const auto* token :
       {"0", "-1", "1.5", "", " 1", "9007199254740992", "99999999999999999999"}) {
    CAPTURE(token);
    refuses({"fence", file.path(), std::string("--token=") + token, "--", "true"}, "--token");
  }
  refuses({"fence", file.path(), "--token", "1", "--wait", "5", "--", "true"}, "say 5s");
  refuses({"fence", "", "--token", "1", "--", "true"}, "FILE");
  refuses({"fence", "/", "--token", "1", "--", "true"}, "beside");
  refuses({"fence", "/nowhere/file", "--token", "1", "--", "true"}, "does not exist");
  fs::create_symlink("nothing", file.place.path() / "astray");
  refuses({"fence", (file.place.path() / "astray").string(), "--token", "1", "--", "true"},
          "leads nowhere");
  CHECK_FALSE(fs::exists(file.path() + ".fence"));
}

TEST_CASE("a directory that cannot be written to is told of, and the command not run") {
  const auto finished = redlock({"fence", "/proc/version", "--token", "1", "--", "echo", "ran"});
  CHECK(finished.status == 125);
  CHECK(finished.out == "");
  CHECK(contains(finished.err, "/proc/version.fence.lock"));
}

TEST_CASE("passwords of nodes do not reach the command") {
  const FencedFile file;
  const auto nodes = [&](const std::string& value) {
    return redlock(file.fence(1, {"sh", "-c", "echo \"<$REDLOCK_NODES>\""}),
                   {{"REDLOCK_NODES", value}})
        .out;
  };
  CHECK(nodes("redis://:secret@h:1") == "<>\n");
  CHECK(nodes("redis://h:1") == "<redis://h:1>\n");
}

}  // namespace
}  // namespace redlock::testing
