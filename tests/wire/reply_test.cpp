// SPDX-License-Identifier: MIT
// What a reply means: what no script can have answered, and errors. What each script answers is
// read where that is told (tests/simulation/conversations).
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

#include "wire/buffer_room.hpp"
#include "wire/error_reply.hpp"
#include "wire/reply_reader.hpp"
#include "wire/script_call.hpp"

using namespace redlock::wire;
using redlock::Cause;
using redlock::engine::Delivery;
namespace engine = redlock::engine;

namespace {

constexpr std::size_t limit = 10'000;

std::optional<engine::Reply> answer_to(Script script, std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  REQUIRE(reader.next(limit) == ReplyReader::Outcome::complete);
  return read_answer(script, reader.reply(), "hunter2");
}

/// Of an error with this cause and consequence.
engine::Unavailable unavailable(std::string_view error, Cause cause, Delivery delivery) {
  const engine::Unavailable why = to_unavailable(error, {});
  CHECK_MESSAGE(why.cause == cause, error);
  CHECK_MESSAGE(why.delivery == delivery, error);
  return why;
}

}  // namespace

TEST_CASE("the largest token is read, and that the node does not have the script") {
  const auto largest =
      answer_to(script_for<engine::AcquireCommand>, "*2\r\n:1\r\n:9007199254740991\r\n");
  CHECK(std::get<engine::Granted>(largest.value()).token == 9'007'199'254'740'991U);
  const auto missing = answer_to(script_for<engine::HoldCommand>,
                                 "-NOSCRIPT No matching script. Please use EVAL.\r\n");
  CHECK(std::holds_alternative<engine::NoScript>(missing.value()));
}

TEST_CASE("what no script can have answered is no answer") {
  for (const ScriptRow& row : script_rows()) {
    if (row.read == nullptr) continue;  // its two commands have rows of their own
    for (const std::string_view bytes :
         {"+OK\r\n", ":7\r\n", "$-1\r\n", "*0\r\n", "*1\r\n$1\r\n1\r\n", "*1\r\n:4294967298\r\n"}) {
      CHECK_MESSAGE(!answer_to(row.script, bytes), row.source.name, bytes);
    }
  }
  for (const std::string_view bytes :
       {":1\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n:9007199254740992\r\n", "*2\r\n:1\r\n:-1\r\n",
        "*2\r\n:1\r\n:0\r\n", "*2\r\n:0\r\n:-2\r\n", "*3\r\n:0\r\n:5\r\n:-1\r\n",
        "*3\r\n:0\r\n:5\r\n$-1\r\n", "*2\r\n:7\r\n:1\r\n", "*1\r\n:0\r\n", "*2\r\n:1\r\n*0\r\n"}) {
    CHECK_MESSAGE(!answer_to(script_for<engine::AcquireCommand>, bytes), bytes);
  }
  for (const std::string_view bytes :
       {"*1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n:-4\r\n",
        "*2\r\n*1\r\n:0\r\n*1\r\n:0\r\n", "*1\r\n*2\r\n:1\r\n:9007199254740992\r\n",
        "*1\r\n*2\r\n:1\r\n:-1\r\n"}) {
    CHECK_MESSAGE(!answer_to(script_for<engine::HoldCommand>, bytes), bytes);
  }
}

TEST_CASE("the prefix of an error says why the node did not vote, and its end what to do") {
  struct Case {
    std::string words;
    std::string remedy;
    Cause cause;
  };
  const std::string masters = "; use independent masters: it is a replica";
  const std::string no_cluster = "; set cluster-enabled no, or use another node";
  const std::string delete_it =
      "; a key of redlock:* there is another program's: find its writer, and delete it";
  const Case cases[] = {
      {"LOADING Redis is loading the dataset in memory",
       "; wait: it votes when it has read its data", Cause::loading},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL",
       "; end the script with SCRIPT KILL or FUNCTION KILL, and find its sender", Cause::busy},
      {"MISCONF Redis is configured to save RDB snapshots", "; make room on its disk, or repair it",
       Cause::write_error},
      {"OOM command not allowed when used memory > 'maxmemory'", "; raise maxmemory",
       Cause::out_of_memory},
      {"READONLY You can't write against a read only replica", masters, Cause::read_only},
      {"MASTERDOWN Link with MASTER is down", masters, Cause::master_down},
      {"NOREPLICAS Not enough good replicas to write",
       "; set min-replicas-to-write 0: lock nodes have none", Cause::too_few_replicas},
      {"MOVED 3999 127.0.0.1:6381", no_cluster, Cause::moved},
      {"ASK 3999 127.0.0.1:6381", no_cluster, Cause::moved},
      {"CLUSTERDOWN Hash slot not served", no_cluster, Cause::moved},
      {"NOAUTH Authentication required",
       "; give its user and password in the URI, or a password file", Cause::authentication},
      {"WRONGPASS invalid username-password pair or user is disabled",
       "; correct the URI or the password file", Cause::authentication},
      {"NOPERM this user has no permissions to run the 'evalsha' command", "; permit +evalsha",
       Cause::permission},
      {"NOPERM this user has no permissions", "; give its user the rights of cluster/users.acl",
       Cause::permission},
      {"DENIED Redis is running in protected mode",
       "; its default user is on without a password, so protected-mode keeps other machines out: "
       "turn that user off, as cluster/users.acl does",
       Cause::permission},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", delete_it,
       Cause::server_error},
      {"ERR unknown command 'EVALSHA'", "; do not rename the commands of a lock node",
       Cause::permission},
  };
  for (const Case& entry : cases) {
    for (const char* end : {"", ".", "\r\n"}) {  // servers differ
      const auto why = unavailable(entry.words + end, entry.cause, Delivery::refused);
      CHECK(why.detail == entry.words + entry.remedy);
    }
  }
  CHECK(to_unavailable("ERR max number of clients reached", {}).detail ==
        "ERR max number of clients reached; raise maxclients");
}

TEST_CASE("a command that a script does not find may be one of its later ones") {
  for (const std::string words : {
           "ERR Unknown Redis command called from script",   // Redis 7
           "ERR Unknown Redict command called from script",  // Redict
           "ERR Unknown command called from script",         // Valkey
           "Unknown Redis command called from Lua script",   // Redis 6.2
       }) {
    for (const std::string behind : {"", " script: 0d, on @user_script:3."}) {
      const auto why = unavailable(words + behind, Cause::permission, Delivery::unknown);
      CHECK(why.detail == words + "; do not rename the commands of a lock node");
    }
  }
}

TEST_CASE("an error is told in short, with what to do, and never as nothing") {
  const engine::Unavailable why = to_unavailable("LOADING " + std::string(100'000, 'x'), {});
  CHECK(why.detail.ends_with("xxx...; wait: it votes when it has read its data"));
  CHECK(why.detail.size() < 300);
  for (const std::string_view text : {"", " ", "\r\n", "\r"}) {
    CHECK(to_unavailable(text, {}).detail == "an error without a text");
  }
  CHECK(to_unavailable("sesame", "sesame").detail == "***");
}

TEST_CASE("a right that is missing is named as ACL SETUSER has it, in the words of each server") {
  const std::string_view script =
      "local lock = KEYS[1]\n"
      "\n"
      "local there = redis.call('HGET', lock, 'x')\n";
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"NOPERM this user has no permissions to run the 'client|kill' command", "+client|kill"},
      {"NOPERM User bob has no permissions to run the 'evalsha' command", "+evalsha"},
      {"NOPERM this user has no permissions to access one of the keys used as arguments",
       "~redlock:*"},
      {"NOPERM this user has no permissions to access one of the channels used as arguments",
       "&redlock:wake:*"},
      {"NOPERM No permissions to access a channel", "&redlock:wake:*"},
      {"ERR The user executing the script can't run this command or subcommand script: 0d, on "
       "@user_script:3.",
       "+hget"},
      {"ERR The user executing the script can't access at least one of the keys mentioned in the "
       "command arguments script: 06, on @user_script:1.",
       "~redlock:*"},
      {"ERR Error running script (call to f_06): @user_script:1: @user_script: 1: The user "
       "executing the script can't access at least one of the keys mentioned in the command "
       "arguments",
       "~redlock:*"},
      {"ERR ACL failure in script: No permissions to access a key script: 06, on @user_script:1.",
       "~redlock:*"},
      {"ERR Error running script (call to f_0d): @user_script:3: @user_script: 3: The user "
       "executing the script can't run this command or subcommand",
       "+hget"},
      {"ERR ACL failure in script: User bob has no permissions to run the 'get' command script: "
       "0d, on @user_script:3.",
       "+get"},
      {"ERR The user executing the script can't run this command or subcommand (PEXPIRE)",
       "+pexpire"},
      {"@user_script: 230: The user executing the script can't run this command or subcommand "
       "(PEXPIRE)",
       "+pexpire"},  // Redis 6.2
  };
  for (const auto& entry : cases) {
    const engine::Unavailable why = to_unavailable(entry.first, {}, script);
    CHECK_MESSAGE(why.cause == Cause::permission, entry.first);
    const bool at_once = entry.first.starts_with("NOPERM");  // before any write of a script
    CHECK_MESSAGE(why.delivery == (at_once ? Delivery::refused : Delivery::unknown), entry.first);
    CHECK_MESSAGE(why.detail.find("@user_script") == std::string::npos, why.detail);
    CHECK_MESSAGE(why.detail.ends_with("; permit " + std::string(entry.second)), why.detail);
  }
  CHECK(to_unavailable("NOPERM no permissions to run the 'Sesame' command", "Sesame").detail ==
        "NOPERM no permissions to run the '***' command; give its user the rights of "
        "cluster/users.acl");
  CHECK(to_unavailable("NOPERM no permissions to run the 'SESAME' command", "sesame")
            .detail.ends_with("; permit +***"));
  for (
      const std::string_view text : {
          "ERR The user executing the script can't run this command script: 0d, on @user_script:9.",
          "ERR The user executing the script can't run this command script: 0d, on @user_script:2.",
          "NOPERM this user has no permissions to run the '\x1b[31m' command",
      }) {
    CHECK(to_unavailable(text, {}, script).detail.find("permit") == std::string::npos);
  }
}

TEST_CASE("an error inside a script keeps its cause, in the words of Redis 7 and of 6.2") {
  const std::pair<std::string_view, Cause> cases[] = {
      {"OOM command not allowed when used memory > 'maxmemory'. script: 9a, on @user_script:31.",
       Cause::out_of_memory},
      {"ERR Error running script (call to f_9a): @user_script:31: @user_script: 31: -OOM command "
       "not "
       "allowed when used memory > 'maxmemory'.\r\n",
       Cause::out_of_memory},
      {"ERR Error running script (call to f_9a): @user_script:31: READONLY You can't write",
       Cause::read_only},
      {"MISCONF Redis is configured to save script: 9a, on @user_script:31.", Cause::write_error},
  };
  for (const auto& entry : cases) {
    const auto why = unavailable(entry.first, entry.second, Delivery::refused);
    CHECK_MESSAGE(why.detail.find("script") == std::string::npos, why.detail);
    CHECK_MESSAGE(why.detail.find("; ") != std::string::npos, why.detail);
  }
}

TEST_CASE("an error that may come after a write leaves open what the node did") {
  unavailable("ERR something new", Cause::server_error, Delivery::unknown);
  unavailable("NOPERM No permissions script: 9a, on @user_script:40.", Cause::permission,
              Delivery::unknown);
  unavailable("ERR The user executing the script can't run this command", Cause::permission,
              Delivery::unknown);
  unavailable("ERR redlock: the fence has reached 2^53", Cause::server_error, Delivery::refused);
  for (const char* words : {"WRONGTYPE Operation against a key script: 9a, on @user_script:31.",
                            "BUSYGROUP Consumer Group name already exists"}) {
    CHECK(to_unavailable(words, {}).cause == Cause::server_error);
  }
}

TEST_CASE("what is shown has no password, no control character and no length without end") {
  CHECK(printable("unknown command 'AUTH' 'hunter2' hunter2", "hunter2") ==
        "unknown command 'AUTH' '***' ***");
  CHECK(printable("a\r\nb\x1b[31m\r\n", "") == "a\\x0d\\x0ab\\x1b[31m");
  CHECK(printable(std::string(1'000, 'x'), "").size() <= 203);
  CHECK(printable(std::string(198, 'x') + "hunter2", "hunter2").find("hu") == std::string::npos);
  const auto answer =
      answer_to(script_for<engine::AcquireCommand>, "-ERR hunter2 is what you said\r\n");
  CHECK(std::get<engine::Unavailable>(*answer).detail == "ERR *** is what you said");
}

TEST_CASE("a buffer that was large is emptied with its memory, a small one keeps it") {
  std::string large(100'000, 'x');
  make_empty(large);
  CHECK(large.empty());
  CHECK(large.capacity() < 100'000);
  std::vector<std::uint64_t> parts(10'000);
  make_empty(parts);
  CHECK(parts.capacity() < 10'000);
  std::string small(1'000, 'x');
  make_empty(small);
  CHECK(small.empty());
  CHECK(small.capacity() >= 1'000);
}
