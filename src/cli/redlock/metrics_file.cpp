// SPDX-License-Identifier: MIT
#include "cli/redlock/metrics_file.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/file_descriptor.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::seconds between_writes{10};

[[noreturn]] void fail_to_write(const std::filesystem::path& path) {
  throw Exit(exit_usage, fmt::format("--metrics: cannot write {}: {}", printable(path.string()),
                                     std::system_category().message(errno)));
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, std::shared_ptr<const Metrics> metrics)
    : path_(std::move(path)),
      fresh_(path_.string() + fmt::format(".{}", ::getpid())),
      metrics_(std::move(metrics)) {
  // It would be replaced: for root, even /dev/null.
  std::error_code unknown;
  const auto there = std::filesystem::status(path_, unknown);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    throw Exit(exit_usage, fmt::format("--metrics: {} is not a file", printable(path_.string())));
  }
  write();
  const SignalsKeptOut blocked;
  writer_ = std::thread([this] { keep_writing(); });
}

MetricsFile::~MetricsFile() {
  finish();
}

void MetricsFile::finish() noexcept {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  writer_.join();
}

void MetricsFile::keep_writing() {
  bool has_ended = false;
  while (!has_ended) {
    {
      std::unique_lock lock(mutex_);
      has_ended = ended_.wait_for(lock, between_writes, [this] { return has_ended_; });
    }
    try {
      write();
    } catch (const Exit& exit) {
      // The command is not ended because of it; a reader of the file sees that it is old.
      if (has_ended) say(exit.what());
    }
  }
}

// Written beside the file, and moved over it: a reader gets the whole new file or the whole old
// one.
void MetricsFile::write() const {
  // A file that a killed process of this number left, or a pipe, for whose reader we would wait.
  ::unlink(fresh_.c_str());
  const int created = ::open(fresh_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (created < 0) fail_to_write(path_);
  const FileDescriptor file(created, "metrics");
  const std::string text = metrics_->text();
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = errno;
      ::unlink(fresh_.c_str());
      errno = reason;
      fail_to_write(path_);
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::rename(fresh_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(fresh_.c_str());
    errno = reason;
    fail_to_write(path_);
  }
}

}  // namespace redlock::cli
