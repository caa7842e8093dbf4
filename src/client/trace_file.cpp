// SPDX-License-Identifier: MIT
// The thread that drives writes to the file, so a write never waits for the reader of a pipe, and a
// failed write ends no client.
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include <redlock/options.hpp>

#include "client/sentence.hpp"
#include "net/signals.hpp"

namespace redlock {
namespace {

class TraceFile {
 public:
  explicit TraceFile(const std::string& path)
      : file_(::open(path.c_str(),
                     O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644)) {
    if (file_ >= 0) return;
    throw std::system_error(
        errno, std::generic_category(),
        "the trace file " + client::in_quotes(path) + " cannot be opened for appending");
  }
  ~TraceFile() { ::close(file_); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void append(std::string line) const {
    line += '\n';
    const net::NoBrokenPipe not_ended;
    [[maybe_unused]] const auto written = ::write(file_, line.data(), line.size());
  }

 private:
  const int file_;
};

}  // namespace

std::function<void(std::string_view)> trace_to_file(const std::string& path) {
  return [file = std::make_shared<const TraceFile>(path)](std::string_view line) {
    file->append(std::string(line));
  };
}

}  // namespace redlock
