// SPDX-License-Identifier: MIT
// Scripts as Redis 7 runs them, over the Lua that Redis has within it: KEYS and ARGV, redis.call
// and redis.pcall, replies as Lua values and Lua values as replies, no globals of the script's own.
// One state a thread for all nodes of all worlds; a text is compiled once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/commands.hpp"
#include "simulation/reply.hpp"

struct lua_State;

namespace redlock::simulation {

/// The node on which a script runs.
class ScriptHost {
 public:
  /// A command of the script. An error that is replied is raised, or given to the script.
  virtual void call_from_script(Words words, Reply& reply) = 0;

 protected:
  ~ScriptHost() = default;
};

/// A text that is compiled.
struct Script {
  std::string digest;         ///< SHA-1, by which it is called
  std::string name;           ///< of the file that it ends with, if it is the library's
  bool flagged = false;       ///< it declares what it does: that it writes, and
  bool at_maxmemory = false;  ///< that it may do so there
  int function = 0;           ///< in the registry of Lua
  std::string problem;        ///< why it cannot be compiled
};

class Interpreter {
 public:
  static Interpreter& of_this_thread();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  /// With the bug that is planted in this thread; valid as long as the thread.
  const Script& compile(std::string_view text);
  /// What it replies. False: it failed by itself, not by a command that was refused.
  [[nodiscard]] bool run(const Script& script, Words keys, Words arguments, ScriptHost& host,
                         Reply& reply);

 private:
  Interpreter();

  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  int call(bool& failed);
  bool read_words();
  void set_global(const char* name, Words values);
  bool report_error(const Script& script, Reply& reply);

  struct Close {
    void operator()(lua_State* lua) const;
  };
  std::unique_ptr<lua_State, Close> lua_;
  std::map<std::string, Script, std::less<>> scripts_;  // by text, with its bugs
  ScriptHost* host_ = nullptr;
  std::vector<std::string_view> words_;  // of the command that a script calls
  std::vector<std::string> numbers_;     // among them
};

}  // namespace redlock::simulation
