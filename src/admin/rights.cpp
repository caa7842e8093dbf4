// SPDX-License-Identifier: MIT
// Redis looks at the rights before it looks at the arguments, so that an error of any other kind
// shows that the right is there.
#include "admin/rights.hpp"

#include <variant>

#include "wire/error_reply.hpp"
#include "wire/key_layout.hpp"

namespace redlock::admin {
namespace {

using wire::redlock_layout;

struct Right {
  const char* name;
  QueryCommand proof;
};

constexpr auto* name_of_trial = "redlock-doctor";
/// The last number that a server counts to. (To Redis 6.2 the number 0 means every client.)
constexpr auto* nobody = "9223372036854775807";

const std::vector<Right>& rights() {
  // No program writes this key.
  static const std::string key = redlock_layout.lock(name_of_trial) + ":rights";
  static const std::vector<Right> all{
      {"&redlock:wake:*", {"PUBLISH", redlock_layout.channel("0000000000000000"), ""}},
      {"+publish", {"PUBLISH", redlock_layout.channel("0000000000000000"), ""}},
      {"+client|setname", {"CLIENT", "SETNAME", " "}},
      {"+client|id", {"CLIENT", "ID"}},
      {"+client|kill", {"CLIENT", "KILL", "ID", nobody}},
      {"+config|get", {"CONFIG", "GET", "appendonly"}},
      {"+del", {"DEL", key}},
      {"+exists", {"EXISTS", key}},
      {"+get", {"GET", key}},
      {"+hdel", {"HDEL", key, ""}},
      {"+hexists", {"HEXISTS", key, ""}},
      {"+hget", {"HGET", key, ""}},
      {"+hgetall", {"HGETALL", key}},
      {"+hmget", {"HMGET", key, ""}},
      {"+hset", {"HSET", key, "", "", ""}},
      {"+incr", {"INCR", redlock_layout.fence(name_of_trial)}},  // one token less is no harm
      {"+info", {"INFO", "replication"}},
      {"+pexpire", {"PEXPIRE", key, "1"}},
      {"+pttl", {"PTTL", key}},
      {"+scan", {"SCAN", "0", "COUNT", "1"}},
      {"+set", {"SET", key, "", "XX"}},
      {"+time", {"TIME"}},
      {"+type", {"TYPE", key}},
      {"+zadd", {"ZADD", key, "XX", "1", ""}},
      {"+zrange", {"ZRANGE", key, "0", "0"}},
      {"+zrank", {"ZRANK", key, ""}},
      {"+zrem", {"ZREM", key, ""}},
  };
  return all;
}

}  // namespace

std::vector<QueryCommand> questions_of_rights(const NodeHealth& node) {
  if (node.role.value_or("master") != "master" || node.cluster) return {};
  std::vector<QueryCommand> questions;
  for (const Right& right : rights()) questions.push_back(right.proof);
  questions.push_back({"HELLO"});
  return questions;
}

std::vector<std::string> missing_rights(const NodeAnswers& answers) {
  std::vector<std::string> missing;
  bool may_publish = true;
  for (std::size_t i = 0; i < rights().size(); ++i) {
    const auto& answer = answers.answers[i];
    const auto* error = answer ? std::get_if<wire::Value::ErrorText>(&answer->data) : nullptr;
    if (error == nullptr) continue;
    const auto why = wire::to_unavailable(error->text, {});
    if (why.cause != Cause::permission || wire::is_of_renamed(why.detail)) continue;
    const std::string right = rights()[i].name;
    const bool of_a_channel = why.detail.ends_with("; permit &redlock:wake:*");
    if (right.ends_with("wake:*") && !of_a_channel) continue;
    if (right == "+publish" && of_a_channel) continue;
    may_publish = may_publish && right != "+publish" && !of_a_channel;
    missing.push_back(right);
  }
  // Every connection that uses RESP3 tries to subscribe. If the user may not use the channel, that
  // is reported already.
  const auto& hello = answers.answers.back();
  const bool resp3 = hello && !std::holds_alternative<wire::Value::ErrorText>(hello->data);
  if (resp3 && may_publish && !answers.wakes) missing.emplace_back("+subscribe");
  return missing;
}

}  // namespace redlock::admin
