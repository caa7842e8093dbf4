// SPDX-License-Identifier: MIT
// One line for each booking: seat, token, customer. Only appended to, under flock.
#include "booking_record.hpp"

#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/file.h>
#include <unistd.h>

namespace seat_booking {

namespace {

class FileLock {
 public:
  FileLock(const std::filesystem::path& file, int how)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0 || ::flock(fd_, how) != 0) {
      throw std::runtime_error("cannot lock the booking record " + file.string());
    }
  }
  ~FileLock() { ::close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

std::optional<BookingRecord::Entry> find(const std::filesystem::path& file,
                                         const std::string& seat) {
  std::ifstream in(file);
  std::string line_seat;
  BookingRecord::Entry entry;
  while (in >> line_seat >> entry.token >> entry.customer) {
    if (line_seat == seat) return entry;
  }
  return std::nullopt;
}

}  // namespace

std::optional<BookingRecord::Entry> BookingRecord::look_up(const std::string& seat) const {
  const FileLock lock(file_, LOCK_SH);
  return find(file_, seat);
}

BookingRecord::Answer BookingRecord::book(const std::string& seat, const Entry& entry) const {
  const FileLock lock(file_, LOCK_EX);
  if (const auto before = find(file_, seat)) {
    return entry.token < before->token ? Answer::token_too_old : Answer::taken;
  }
  std::ofstream out(file_, std::ios::app);
  out << seat << ' ' << entry.token << ' ' << entry.customer << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write the booking record");
  return Answer::booked;
}

}  // namespace seat_booking
