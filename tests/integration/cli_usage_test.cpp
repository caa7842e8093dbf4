// SPDX-License-Identifier: MIT
// What the command says to arguments that cannot work, and how it teaches those that can. No node
// is needed: nothing here may reach one.
#include "cli_process.hpp"

namespace redlock::testing {
namespace {

const Variables one_node{{"REDLOCK_NODES", "redis://127.0.0.1:1"}};

void refuses(const Arguments& arguments, const std::string& sentence,
             const Variables& variables = one_node) {
  const auto finished = redlock(arguments, variables);
  CAPTURE(arguments);
  CAPTURE(finished.err);
  CHECK(finished.status == 64);
  CHECK(finished.out.empty());
  CHECK(finished.err.starts_with("redlock: "));
  CHECK(contains(finished.err, sentence));
  // One sentence, on one line.
  CHECK(occurrences(finished.err, "\n") == 1);
}

TEST_CASE("every subcommand explains itself with examples, on a terminal of 100 columns") {
  const std::string all = redlock({"lock"}).err;
  const std::regex name_in_list(R"([a-z]+(?=,| \(see))");
  const std::sregex_iterator names(all.begin(), all.end(), name_in_list);
  CHECK(std::distance(names, {}) >= 15);
  for (auto each = names; each != std::sregex_iterator(); ++each) {
    const std::string name = each->str();
    CAPTURE(name);
    const auto finished = exits_with(0, redlock({name, "--help"}));
    CHECK(finished.err == "");
    CHECK(contains(finished.out, "Usage: redlock " + name));
    CHECK((contains(finished.out, "Example") || contains(finished.out, "Subcommands:")));
    for (const auto& line : lines_of(finished.out)) CHECK_MESSAGE(line.size() <= 100, line);
  }
  const auto finished = exits_with(0, redlock({"--help"}));
  check_contains(finished.out, {"redlock fleet up", "69 no quorum"});
  // What the token is for.
  const auto exec = redlock({"exec", "--help"}).out;
  check_contains(exec, {"redlock exec NAME [OPTIONS] -- CMD",
                        "nothing can watch CMD while redlock is", "REDLOCK_TOKEN"});
  CHECK(contains(redlock({"release", "--help"}).out, "token is older"));
  CHECK(redlock({"--version"}).status == 0);
  CHECK(redlock({"--version"}).out.starts_with("redlock "));
}

TEST_CASE("help is --help, also with the words before it") {
  for (const Arguments& words :
       {Arguments{}, Arguments{"exec"}, Arguments{"fleet"}, Arguments{"fleet", "up"}}) {
    const auto help = exits_with(0, redlock(appended({"help"}, words)));
    CHECK(help.out == redlock(appended(words, {"--help"})).out);
    CHECK_FALSE(help.out.empty());
  }
  refuses({"help", "lock"}, "there is no subcommand lock");
}

TEST_CASE(
    "a password that is written so that its URI breaks is in no sentence, wherever that stood") {
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  for (const std::string between : {" ", ",", "#", "\n", "@", "/", "?", ", ", "\t", ":"}) {
    for (const std::string scheme : {"redis://", ""}) {
      const auto uri = scheme + "u:alpha" + between + "omega@h:port";
      CAPTURE(uri);
      std::ofstream(file) << uri;
      for (const Arguments& arguments :
           {Arguments{"status", "a", "--nodes", uri},
            Arguments{"status", "a", "--nodes-file", file},
            Arguments{"status", "a", "--nodes-file", uri}, Arguments{"status", "a", uri},
            Arguments{uri}, Arguments{"status", "a", "--node=" + uri},
            Arguments{"status", "a", "--max-lease", uri},
            Arguments{"status", "a", "--nodes", "h:1", "--password-file", uri},
            Arguments{"status", "a"}}) {
        const auto finished = exits_with(64, redlock(arguments, nodes_variable({uri})));
        CHECK_FALSE(contains(finished.out + finished.err, "alpha"));
        CHECK_FALSE(contains(finished.out + finished.err, "omega"));
      }
    }
  }
}

TEST_CASE("a nodes file that cannot be read to its end or names no node is refused") {
  const TemporaryDirectory place;
  const auto file = (place.path() / "nodes").string();
  const auto pipe = (place.path() / "pipe").string();
  std::ofstream(file) << "# nothing\n\n";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto& [name, sentence] :
       {std::pair<std::string, std::string>{"/nowhere/nodes", "/nowhere/nodes"},
        {file, "names no node"},
        {place.path().string(), "it is a directory"},
        {"/dev/zero", "is longer than 65536 bytes"},
        {"/dev/null", "names no node"},
        {"/dev/stdin", "names no node"},
        {pipe, "did not end within 20 s"}}) {
    refuses({"status", "a", "--nodes-file", name}, sentence);
  }
  refuses({"status", "a", "--nodes-file", file, "--nodes", "redis://h"}, "--nodes");
  std::ofstream(file) << "redis://127.0.0.1:1,\nredis://:secret@127.0.0.1:2x\n";
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  refuses({"status", "a", "--nodes-file", file}, file + ": nodes[1]: the port");
}

TEST_CASE("nodes may come from stdin, from a pipe, and without their scheme") {
  const TemporaryDirectory place;
  const auto unreachable = [](const Finished& finished) {
    CAPTURE(finished.err);
    CHECK(finished.status == 69);
    CHECK(contains(finished.out, "redis://127.0.0.1:1"));
  };
  Running typed({"status", "a", "--nodes-file", "/dev/stdin"});
  typed.write("127.0.0.1:1 # the only one\n");
  unreachable(typed.wait());

  const auto pipe = (place.path() / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Running reader({"status", "a", "--nodes-file", pipe});
  std::ofstream(pipe) << "127.0.0.1:1\n";
  unreachable(reader.wait());

  unreachable(redlock({"status", "a", "--nodes", "127.0.0.1:1"}));
  unreachable(redlock({"status", "a"}, nodes_variable({"127.0.0.1:1"})));
}

TEST_CASE("durations that cannot work are refused, and without a unit with the unit to write") {
  refuses(exec_a({"--lease", "30"}, {"true"}), "say 30s");
  refuses({"acquire", "a", "--wait", "5"}, "say 5s");
  refuses({"status", "a", "--node-timeout", "250"}, "250ms");
  for (const auto& [lease, sentence] : {std::pair{"10", "say 10s"},
                                        {"soon", "not a duration"},
                                        {"-5s", "negative"},
                                        {"0", "longer than zero"},
                                        {"0s", "longer than zero"},
                                        {"forever", "has to end"},
                                        {"24000h", "the most is a year"},
                                        {"24001h", "too long"},
                                        {"99999999999h", "too long"},
                                        {"99999999999999999999s", "not a duration"},
                                        {"2ms", "lease"},
                                        {"", "not a duration"}}) {
    refuses({"acquire", "a", "--lease", lease}, sentence);
  }
  // Half the lease or more is no grace.
  refuses(exec_a({"--lease", "10s", "--grace", "5s"}, {"true"}), "--grace");
  refuses(exec_a({"--grace", "15s"}, {"true"}), "half the lease");
  refuses(exec_a({"--grace", "forever"}, {"true"}), "has to end");
}

TEST_CASE("a subcommand, a command, nodes or a name that is missing or wrong is refused") {
  refuses({}, "subcommand");
  refuses({"lock", "a"}, "there is no subcommand lock; there are exec, fence, acquire");
  refuses({"fleet"}, "subcommand");
  refuses({"status", "a"}, "--nodes", {});
  refuses({"status", "a", "--nodes", "http://127.0.0.1:1"}, "redis://");
  refuses({"status", "a", "--nodes", ""}, "node");
  refuses({"status", "a", "--nodes", "redis://127.0.0.1:1,redis://127.0.0.1:1"}, "127.0.0.1:1");
  refuses({"exec", "a", "--", "true"}, "redlock fleet up", {});
  refuses({"exec", "a"}, "behind --");
  refuses({"exec", "a", "--"}, "behind --");
  refuses({"exec", "a", "true"}, "true; the command goes behind --");
  refuses({"exec", "--", "true"}, "NAME");
  refuses({"acquire", ""}, "name");
  refuses({"acquire", "a{b"}, "name");
  refuses({"status", std::string(513, 'a')}, "512");
  refuses({"release", "a}b", "--owner", std::string(32, '0')}, "name");
}

TEST_CASE("other options that cannot work are refused") {
  refuses(exec_a({"--signal", "NOPE"}, {"true"}), "NOPE");
  refuses(exec_a({"-E", "256"}, {"true"}), "256");
  refuses(exec_a({"-E", "many"}, {"true"}), "many");
  refuses({"status", "a", "-o", "yaml"}, "yaml");
  refuses({"list", "--limit", "0"}, "limit");
  refuses({"release", "a"},
          "Say --owner with the owner that `redlock acquire` printed, or --force");
  refuses({"release", "a", "--force", "--owner", std::string(32, 'e')}, "--owner");
  refuses({"release", "a", "--owner", "me"}, "owner");
  refuses({"hold", "a", "--owner", "me"}, "owner");
  const std::string unopened = "the trace file '/nowhere/trace' cannot be opened for appending";
  refuses(exec_a({"--trace", "/nowhere/trace"}, {"true"}), "--trace: " + unopened);
  refuses({"status", "a", "--trace=/nowhere/trace"}, "--trace: " + unopened);
  refuses({"status", "a"}, "REDLOCK_TRACE: the trace file '/' cannot be opened",
          {{"REDLOCK_NODES", "redis://127.0.0.1:1"}, {"REDLOCK_TRACE", "/"}});
  refuses({"fleet", "up", "-n", "0"}, "-n");
  refuses({"fleet", "up", "-n", "65"}, "64");
  refuses({"fleet", "kill", "-1"}, "-1");
  refuses({"hold", "a", "--owner", std::string(32, '0'), "--token", "-1"}, "-1");
  refuses({"fleet", "up", "--persistence", "some"}, "persistence");
}

}  // namespace
}  // namespace redlock::testing
