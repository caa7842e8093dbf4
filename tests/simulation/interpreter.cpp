// SPDX-License-Identifier: MIT
// Lua leaves a function by longjmp where it raises an error, so no function here that does has
// anything to destroy by then.
#include "simulation/interpreter.hpp"

#include <array>
#include <cstdio>
#include <lua.hpp>

#include "simulation/script_bugs.hpp"
#include "simulation/sha1.hpp"
#include "wire/redlock_scripts.hpp"
#include "wire/script_set.hpp"

namespace redlock::simulation {
namespace {

/// As values of Lua, on its stack: one when the reply is complete.
class LuaReply final : public Reply {
 public:
  explicit LuaReply(lua_State* lua) : lua_(lua) {}

  void integer(std::int64_t number) override {
    lua_pushnumber(lua_, static_cast<lua_Number>(number));
    added();
  }
  void bulk(std::string_view text) override {
    lua_pushlstring(lua_, text.data(), text.size());
    added();
  }
  void status(std::string_view text) override { field("ok", text); }
  void error(std::string_view text) override {
    failed_ = true;
    field("err", text);
  }
  void null() override {
    lua_pushboolean(lua_, 0);
    added();
  }
  void array(std::size_t elements) override {
    lua_createtable(lua_, static_cast<int>(elements), 0);
    left_ = static_cast<int>(elements);
  }
  void map(std::size_t pairs) override { array(2 * pairs); }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void field(const char* name, std::string_view text) {
    lua_createtable(lua_, 0, 1);
    lua_pushlstring(lua_, text.data(), text.size());
    lua_setfield(lua_, -2, name);
    added();
  }
  // No command replies arrays within arrays.
  void added() {
    if (left_ == 0) return;
    lua_rawseti(lua_, -2, ++at_);
    --left_;
  }

  lua_State* lua_;
  int left_ = 0;
  int at_ = 0;
  bool failed_ = false;
};

std::string_view text_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

/// Tells the field of the table on top, if it is a text.
template <typename Tell>
bool tell_field(lua_State* lua, const char* name, Tell&& tell) {
  lua_getfield(lua, -1, name);
  const bool there = lua_type(lua, -1) == LUA_TSTRING;
  if (there) tell(text_at(lua, -1));
  lua_pop(lua, 1);
  return there;
}

/// The value on top, which it takes away. An array ends before its first nil.
void write_value(lua_State* lua, Reply& reply) {
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
      reply.bulk(text_at(lua, -1));
      break;
    case LUA_TNUMBER:
      reply.integer(static_cast<std::int64_t>(lua_tonumber(lua, -1)));
      break;
    case LUA_TBOOLEAN:
      lua_toboolean(lua, -1) != 0 ? reply.integer(1) : reply.null();
      break;
    case LUA_TTABLE: {
      if (tell_field(lua, "err", [&](std::string_view text) { reply.error(text); })) break;
      if (tell_field(lua, "ok", [&](std::string_view text) { reply.status(text); })) break;
      int size = 0;
      for (bool more = true; more; size += more ? 1 : 0) {
        lua_rawgeti(lua, -1, size + 1);
        more = !lua_isnil(lua, -1);
        lua_pop(lua, 1);
      }
      reply.array(static_cast<std::size_t>(size));
      for (int i = 1; i <= size; ++i) {
        lua_rawgeti(lua, -1, i);
        write_value(lua, reply);
      }
      break;
    }
    default:
      reply.null();
  }
  lua_pop(lua, 1);
}

/// Of what a script does not catch: a table with the text, and the line of the script.
int on_error(lua_State* lua) {
  const bool by_command = lua_istable(lua, 1);
  if (!by_command) {
    lua_pushliteral(lua, "ERR ");
    lua_pushvalue(lua, 1);
    lua_concat(lua, 2);
    lua_createtable(lua, 0, 3);
    lua_insert(lua, -2);
    lua_setfield(lua, -2, "err");
    lua_pushboolean(lua, 1);
    lua_setfield(lua, -2, "by_itself");
  }
  lua_Debug where;
  for (int level = 1; lua_getstack(lua, level, &where) != 0; ++level) {
    lua_getinfo(lua, "Sl", &where);
    if (where.currentline < 0) continue;  // C
    lua_pushinteger(lua, where.currentline);
    lua_setfield(lua, -2, "line");
    break;
  }
  return 1;
}

int push_error(lua_State* lua, const char* text) {
  lua_createtable(lua, 0, 1);
  lua_pushstring(lua, text);
  lua_setfield(lua, -2, "err");
  return 1;
}

/// A table with one text, of which an error's may begin with a minus.
int push_single_field(lua_State* lua, const char* name) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    return push_error(lua, "ERR wrong number or type of arguments");
  }
  lua_createtable(lua, 0, 1);
  const char* const text = lua_tostring(lua, 1);
  lua_pushstring(lua, text + (*text == '-' && *name == 'e' ? 1 : 0));
  lua_setfield(lua, -2, name);
  return 1;
}

int error_reply(lua_State* lua) {
  return push_single_field(lua, "err");
}

int status_reply(lua_State* lua) {
  return push_single_field(lua, "ok");
}

int no_such_global(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

int no_new_global(lua_State* lua) {
  return luaL_error(lua, "Attempt to modify a readonly table");
}

/// No script may have, or look for, globals of its own.
void close_globals(lua_State* lua) {
  for (const char* const name : {"dofile", "loadfile", "print"}) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, no_such_global);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, no_new_global);
  lua_setfield(lua, -2, "__newindex");
  lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

/// The name of the library's script, if it is one. Parts of others may stand in front of its text.
std::string_view name_of(std::string_view text) {
  for (const wire::ScriptText& script : wire::scripts::all) {
    if (text.ends_with(script.text)) return script.name;
  }
  return "a script";
}

}  // namespace

void Interpreter::Close::operator()(lua_State* lua) const {
  lua_close(lua);
}

Interpreter& Interpreter::of_this_thread() {
  static thread_local Interpreter interpreter;
  return interpreter;
}

Interpreter::Interpreter() : lua_(luaL_newstate()) {
  lua_State* const lua = lua_.get();
  // There is little to collect, and all compiled scripts to look through.
  lua_gc(lua, LUA_GCSETPAUSE, 1'000);
  for (const lua_CFunction open : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
  }
  lua_createtable(lua, 0, 4);
  for (const auto& [name, function] : {std::pair<const char*, lua_CFunction>{"call", call},
                                       {"pcall", pcall},
                                       {"error_reply", error_reply},
                                       {"status_reply", status_reply}}) {
    lua_pushlightuserdata(lua, this);
    lua_pushcclosure(lua, function, 1);
    lua_setfield(lua, -2, name);
  }
  lua_setglobal(lua, "redis");
  close_globals(lua);
}

const Script& Interpreter::compile(std::string_view text) {
  const auto found = with_planted_bugs(text, [&](std::string_view what) {
    const auto known = scripts_.find(what);
    if (known != scripts_.end()) return known;
    Script script{.digest = sha1(text), .name = std::string(name_of(text)), .problem = {}};
    script.flagged = what.starts_with("#!lua");
    const std::string_view flags = what.substr(0, script.flagged ? what.find('\n') : 0);
    script.at_maxmemory = flags.find("allow-oom") != std::string_view::npos;
    const std::string_view body = what.substr(flags.size());
    lua_State* const lua = lua_.get();
    if (luaL_loadbuffer(lua, body.data(), body.size(), "@user_script") == 0) {
      script.function = luaL_ref(lua, LUA_REGISTRYINDEX);
    } else {
      script.problem = text_at(lua, -1);
      lua_pop(lua, 1);
    }
    return scripts_.emplace(what, std::move(script)).first;
  });
  return found->second;
}

void Interpreter::set_global(const char* name, Words values) {
  lua_State* const lua = lua_.get();
  lua_pushstring(lua, name);
  lua_createtable(lua, static_cast<int>(values.size()), 0);
  int at = 0;
  for (const std::string_view value : values) {
    lua_pushlstring(lua, value.data(), value.size());
    lua_rawseti(lua, -2, ++at);
  }
  lua_rawset(lua, LUA_GLOBALSINDEX);
}

bool Interpreter::run(const Script& script, Words keys, Words arguments, ScriptHost& host,
                      Reply& reply) {
  host_ = &host;
  lua_State* const lua = lua_.get();
  set_global("KEYS", keys);
  set_global("ARGV", arguments);
  lua_pushcfunction(lua, on_error);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, script.function);
  bool fails_by_itself = false;
  if (lua_pcall(lua, 0, 1, -2) == 0) {
    write_value(lua, reply);
  } else {
    fails_by_itself = report_error(script, reply);
  }
  lua_settop(lua, 0);
  return !fails_by_itself;
}

/// Whether the script itself failed.
bool Interpreter::report_error(const Script& script, Reply& reply) {
  lua_State* const lua = lua_.get();
  if (!lua_istable(lua, -1)) return reply.error("ERR unknown error"), true;
  lua_getfield(lua, -1, "line");
  const std::string line = std::to_string(lua_tointeger(lua, -1));
  lua_pop(lua, 1);
  const auto tell = [&](std::string_view text) {
    reply.error(std::string(text) + " script: " + script.digest + ", on @user_script:" + line +
                ".");
  };
  if (!tell_field(lua, "err", tell)) reply.error("ERR unknown error");
  lua_getfield(lua, -1, "by_itself");
  const bool by_itself = lua_toboolean(lua, -1) != 0;
  lua_pop(lua, 1);
  return by_itself;
}

/// False: not all of the arguments are texts or numbers.
bool Interpreter::read_words() {
  lua_State* const lua = lua_.get();
  const int count = lua_gettop(lua);
  words_.clear();
  numbers_.clear();
  numbers_.reserve(static_cast<std::size_t>(count));  // the words are views of them
  for (int i = 1; i <= count; ++i) {
    const int type = lua_type(lua, i);
    if (type == LUA_TNUMBER) {
      // lua_tolstring would lose digits.
      std::array<char, 64> text;
      const int size = std::snprintf(text.data(), text.size(), "%.17g", lua_tonumber(lua, i));
      words_.push_back(numbers_.emplace_back(text.data(), static_cast<std::size_t>(size)));
    } else if (type == LUA_TSTRING) {
      words_.push_back(text_at(lua, i));
    } else {
      return false;
    }
  }
  return true;
}

int Interpreter::call(bool& failed) {
  lua_State* const lua = lua_.get();
  failed = true;
  if (!read_words()) {
    return push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
  }
  if (words_.empty()) {
    return push_error(lua, "ERR Please specify at least one argument for this redis.call() call");
  }
  LuaReply reply(lua);
  host_->call_from_script(words_, reply);
  failed = reply.failed();
  return 1;
}

int Interpreter::call(lua_State* lua) {
  bool failed = false;
  const int results =
      static_cast<Interpreter*>(lua_touserdata(lua, lua_upvalueindex(1)))->call(failed);
  return failed ? lua_error(lua) : results;
}

int Interpreter::pcall(lua_State* lua) {
  bool failed = false;
  return static_cast<Interpreter*>(lua_touserdata(lua, lua_upvalueindex(1)))->call(failed);
}

}  // namespace redlock::simulation
