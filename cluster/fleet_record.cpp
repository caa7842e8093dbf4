// SPDX-License-Identifier: MIT
//
// The format, line by line: "redlock-fleet 1", "boot ID", "password TEXT" if there is one,
// "persistence always" and "unix-sockets yes" if that is so, "setting LINE" for each further line
// of redis.conf, and "node PORT PID START" for each node in order.
#include "fleet_record.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <thread>

#include "fleet_error.hpp"

namespace redlock::cluster {
namespace {

constexpr const char* kHeadline = "redlock-fleet 1";

std::filesystem::path path_in(const std::filesystem::path& directory) {
  return directory / "fleet";
}

std::filesystem::path draft_in(const std::filesystem::path& directory) {
  return directory / "fleet.new";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

bool read_entry(std::istringstream& words, FleetRecord& record) {
  FleetRecord::Entry entry;
  words >> entry.port >> entry.process.pid >> entry.process.started;
  record.nodes.push_back(entry);
  return !words.fail();
}

bool read_line(const std::string& line, FleetRecord& record) {
  std::istringstream words(line);
  std::string key;
  words >> key;
  if (key == "boot") return static_cast<bool>(words >> record.boot);
  if (key == "password") return static_cast<bool>(std::getline(words >> std::ws, record.password));
  if (key == "setting") {
    std::getline(words >> std::ws, record.settings.emplace_back());  // may be empty
    return true;
  }
  std::string value;
  if (key == "persistence") return record.durable = words >> value && value == "always";
  if (key == "unix-sockets") return record.unix_sockets = words >> value && value == "yes";
  return key == "node" && read_entry(words, record);
}

}  // namespace

FleetRecord FleetRecord::of_this_boot() {
  FleetRecord record;
  record.boot = boot_id();
  return record;
}

std::optional<FleetRecord> FleetRecord::load(const std::filesystem::path& directory) {
  const auto path = path_in(directory);
  std::ifstream file(path);
  if (!file) {
    if (!std::filesystem::exists(path)) return std::nullopt;
    throw FleetError(fmt::format("cannot read {}", path.string()));
  }
  FleetRecord record;
  std::string line;
  bool understood = std::getline(file, line) && line == kHeadline;
  while (understood && std::getline(file, line)) understood = read_line(line, record);
  if (!understood) {
    throw FleetError(
        fmt::format("{} is not the record of a fleet; choose another directory", path.string()));
  }
  if (record.boot != boot_id()) {
    for (auto& node : record.nodes) node.process = {};
  }
  return record;
}

void FleetRecord::save(const std::filesystem::path& directory) const {
  const auto draft = draft_in(directory);
  const UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::string text = fmt::format("{}\nboot {}\n", kHeadline, boot);
  if (!password.empty()) text += fmt::format("password {}\n", password);
  if (durable) text += "persistence always\n";
  if (unix_sockets) text += "unix-sockets yes\n";
  for (const auto& setting : settings) {
    std::istringstream lines(setting);
    for (std::string line; std::getline(lines, line);) text += fmt::format("setting {}\n", line);
  }
  for (const auto& [port, process] : nodes) {
    text += fmt::format("node {} {} {}\n", port, process.pid, process.started);
  }
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw FleetError(fmt::format("cannot write {}: {}", draft.string(), std::strerror(errno)));
  }
  std::filesystem::rename(draft, path_in(directory));
}

void FleetRecord::erase(const std::filesystem::path& directory) {
  std::filesystem::remove(path_in(directory));
  std::filesystem::remove(draft_in(directory));
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!fd_) {
    throw FleetError(fmt::format("cannot open {}: {}", directory.string(), std::strerror(errno)));
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      throw FleetError(
          fmt::format("another program is busy with the fleet in {}; try again when it is done",
                      directory.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // flock knows no deadline
  }
}

// Closing is not enough: a process that another thread has forked has the descriptor as well.
DirectoryLock::~DirectoryLock() {
  ::flock(fd_.get(), LOCK_UN);
}

}  // namespace redlock::cluster
