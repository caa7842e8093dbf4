// SPDX-License-Identifier: MIT
#include "fencing/storm/counter.hpp"

#include <hiredis/hiredis.h>
#include <stdexcept>

#include <redlock/fenced_redis.hpp>
#include <redlock/fenced_redis_hiredis.hpp>

#include "examples/fenced_postgres/accounts.hpp"
#include "examples/fenced_sqlite/accounts.hpp"

namespace redlock::storm {
namespace {

constexpr auto* account = "counter";

class InRedis : public Counter {
 public:
  explicit InRedis(std::uint16_t port) : connection_(redisConnect("127.0.0.1", port), redisFree) {
    if (!connection_ || connection_->err != 0) throw std::runtime_error("no Redis");
  }
  [[nodiscard]] const char* name() const override { return "Redis"; }
  std::optional<std::int64_t> open(std::uint64_t token) override {
    const FencedReply reply = answer(fenced_read(account, token));
    if (!reply.result.applied()) return std::nullopt;
    return std::stoll(reply.value.value_or("0"));
  }
  bool write(std::int64_t value, std::uint64_t token) override {
    return answer(fenced_write(account, std::to_string(value), token)).result.applied();
  }

 private:
  FencedReply answer(const FencedCommand& command) {
    auto reply = run(*connection_, command);
    if (!reply) throw std::runtime_error("Redis: " + reply.error());
    return *reply;
  }
  std::unique_ptr<redisContext, decltype(&redisFree)> connection_;
};

/// Both databases are used in the same way.
template <typename Accounts>
class InTable : public Counter {
 public:
  InTable(const char* name, const std::string& database) : name_(name), accounts_(database) {
    accounts_.add(account, 0);
  }
  [[nodiscard]] const char* name() const override { return name_; }
  std::optional<std::int64_t> open(std::uint64_t token) override {
    return accounts_.open(account, token);
  }
  bool write(std::int64_t value, std::uint64_t token) override {
    return accounts_.write(account, value, token);
  }

 private:
  const char* name_;
  Accounts accounts_;
};

}  // namespace

std::vector<std::unique_ptr<Counter>> connect(const Places& places) {
  using InSqlite = InTable<fenced_sqlite::Accounts>;
  using InPostgres = InTable<fenced_postgres::Accounts>;
  std::vector<std::unique_ptr<Counter>> all;
  all.push_back(std::make_unique<InRedis>(places.redis_port));
  all.push_back(std::make_unique<InSqlite>("SQLite", places.sqlite_file));
  if (!places.postgres.empty()) {
    all.push_back(std::make_unique<InPostgres>("PostgreSQL", places.postgres));
  }
  return all;
}

}  // namespace redlock::storm
