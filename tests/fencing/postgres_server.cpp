// SPDX-License-Identifier: MIT
#include "fencing/postgres_server.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fmt/core.h>
#include <fstream>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sstream>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "cluster/fleet_error.hpp"

namespace redlock::testing {
namespace {

namespace fs = std::filesystem;
using cluster::FleetError;

constexpr auto* user_name = "redlock";

/// The directory of initdb and postgres; empty if there is none.
fs::path programs() {
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  std::error_code none;  // a directory that cannot be read has nothing for us
  for (std::string place; std::getline(path, place, ':');) {
    if (fs::exists(fs::path(place) / "initdb", none)) return place;
  }
  std::vector<fs::path> versions;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const auto place = version.path() / "bin";
    if (fs::exists(place / "initdb", none)) versions.push_back(place);
  }
  return versions.empty() ? fs::path() : std::ranges::max(versions);
}

/// PostgreSQL does not run as root.
const passwd* other_user() {
  if (::geteuid() != 0) return nullptr;
  const passwd* const user = ::getpwnam("postgres");
  return user != nullptr ? user : ::getpwnam("nobody");
}

void give_to_other_user(const fs::path& directory) {
  const passwd* const user = other_user();
  if (user == nullptr || ::chown(directory.c_str(), user->pw_uid, user->pw_gid) == 0) return;
  throw FleetError("cannot give the directory " + directory.string() + " to " + user->pw_name);
}

}  // namespace

bool PostgresServer::is_installed() {
  return !programs().empty();
}

PostgresServer::Server::~Server() {
  // Its children are in sessions of their own, and would still write while the directory is being
  // deleted.
  process.signal(SIGQUIT);
  if (process.await_end(std::chrono::seconds(30))) return;
  process.signal(SIGKILL);
  process.await_end(std::chrono::seconds(30));
}

PostgresServer::PostgresServer() : reaper_(directory_.path()) {
  give_to_other_user(directory_.path());
  const std::string data = (directory_.path() / "data").string();
  const Server initdb(start("initdb", {"--pgdata", data, "--username", user_name, "--auth", "trust",
                                       "--no-sync", "--encoding", "UTF8", "--locale", "C"}));
  if (!initdb.process.await_end(std::chrono::minutes(2))) {
    throw FleetError("initdb takes too long: " + log());
  }
  server_.emplace(start("postgres", {"-D", data, "-k", directory_.path().string(), "-c",
                                     "listen_addresses=", "-c", "max_connections=50"}));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (PQping(connection().c_str()) != PQPING_OK) {
    if (server_->process.ended()) throw FleetError("PostgreSQL does not start: " + log());
    if (std::chrono::steady_clock::now() > deadline) {
      throw FleetError("PostgreSQL takes too long to start: " + log());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::string PostgresServer::connection() const {
  return fmt::format("host={} user={} dbname=postgres", directory_.path().string(), user_name);
}

cluster::Process PostgresServer::start(const std::string& program,
                                       const std::vector<std::string>& arguments) const {
  // Not in the reaper's group: a server that is killed leaves its shared memory on the machine, one
  // that is told to end takes it along. Should nobody have told it, it ends when it misses its
  // directory, which the reaper deletes.
  std::vector<std::string> argv{"setpriv", "--pdeathsig=QUIT"};
  if (const passwd* const user = other_user()) {
    argv.push_back(fmt::format("--reuid={}", user->pw_uid));
    argv.push_back(fmt::format("--regid={}", user->pw_gid));
    argv.emplace_back("--clear-groups");
  }
  argv.emplace_back("--");
  argv.push_back((programs() / program).string());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return cluster::Process::spawn({.argv = argv, .output = directory_.path() / "log"});
}

std::string PostgresServer::log() const {
  std::ifstream in(directory_.path() / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace redlock::testing
