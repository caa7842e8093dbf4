// SPDX-License-Identifier: MIT
#include <cassert>
#include <utility>

#include <redlock/fenced_redis.hpp>

#include "wire/redlock_scripts.hpp"

namespace redlock {
namespace {

// Redis Cluster hashes what stands between the first { and the first } behind it, if that is not
// empty, in place of the whole key.
bool has_hash_tag(std::string_view key) {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return false;
  const auto close = key.find('}', open);
  return close != std::string_view::npos && close != open + 1;
}

}  // namespace

std::vector<std::string> FencedCommand::words() const {
  std::vector<std::string> all{"EVAL", script, std::to_string(keys.size())};
  all.insert(all.end(), keys.begin(), keys.end());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

FencedCommand fenced_write(std::string_view key, std::string_view value, std::uint64_t token) {
  return fenced_eval("return redis.call('SET', KEYS[1], ARGV[1])", {std::string(key)},
                     {std::string(value)}, token);
}

FencedCommand fenced_read(std::string_view key, std::uint64_t token) {
  return fenced_eval("return redis.call('GET', KEYS[1])", {std::string(key)}, {}, token);
}

FencedCommand fenced_eval(std::string_view lua, std::vector<std::string> keys,
                          std::vector<std::string> arguments, std::uint64_t token) {
  assert(!keys.empty() && "the first key is the resource that is stamped");
  keys.push_back(stamp_key(keys.front()));
  arguments.push_back(std::to_string(token));
  // The line breaks are for a comment at the end of `lua`. An error that `lua` returns, such as one
  // of redis.pcall, must not hide in a reply that says `applied`. A nil would end the array; false
  // becomes one in the reply.
  auto script = std::string(wire::scripts::fenced) + "local answer = (function()\n" +
                std::string(lua) +
                "\nend)()\n"
                "if type(answer) == 'table' and answer.err then return answer end\n"
                "return {0, answer or false}\n";
  return {std::move(script), std::move(keys), std::move(arguments)};
}

FencedResult fenced_result(std::int64_t first) noexcept {
  if (first == 0) return {};
  return {FencedResult::Kind::stale, static_cast<std::uint64_t>(first)};
}

std::string stamp_key(std::string_view key) {
  // The two beginnings keep `a` and `{a}` apart. A key with a } but no tag cannot be put into one.
  const bool can_be_tag = !has_hash_tag(key) && key.find('}') == std::string_view::npos;
  if (!can_be_tag) return "redlock:stamp:of:" + std::string(key);
  return "redlock:stamp:{" + std::string(key) + "}";
}

}  // namespace redlock
