// SPDX-License-Identifier: MIT
// The resource that the lock protects: a file that says who has which seat. It does not trust the
// holder of the lock: it keeps the largest token that it has seen for each seat and refuses a
// smaller one. A database would do the same in the WHERE clause of its UPDATE.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace seat_booking {

class BookingRecord {
 public:
  struct Entry {
    std::string customer;
    std::uint64_t token = 0;
  };
  enum class Answer { booked, taken, token_too_old };

  explicit BookingRecord(std::filesystem::path file) : file_(std::move(file)) {}

  /// Who has the seat, if anybody.
  [[nodiscard]] std::optional<Entry> look_up(const std::string& seat) const;

  /// Books the seat unless it is taken or a larger token has been used for it before.
  [[nodiscard]] Answer book(const std::string& seat, const Entry& entry) const;

 private:
  std::filesystem::path file_;
};

}  // namespace seat_booking
