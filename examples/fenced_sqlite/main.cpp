// SPDX-License-Identifier: MIT
// A clerk who changes the balance of an account in a file of SQLite, under a lock: run it with
// redlock exec. The row itself refuses the write of a late clerk. Start with accounts.cpp.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "accounts.hpp"

namespace {

constexpr const char* help =
    "Usage: redlock exec account:ID -- fenced_sqlite DATABASE ID\n\n"
    "Prints the balance, reads an amount from standard input, adds it and prints the new balance.\n"
    "An account that is not there is opened, with nothing in it.\n"
    "Exit status: 0 done, 77 refused because of an older token, 1 trouble, 64 usage.\n\n"
    "Example:\n"
    "  echo 25 | redlock exec account:7 -- fenced_sqlite bank.db 7\n";

constexpr int exit_stale = 77;
constexpr int exit_usage = 64;

/// Accepts only tokens that a lock can issue: a column that starts with 0 would let 0 through, and
/// a token that is larger than any would keep all others out for ever.
std::optional<std::uint64_t> parse_token(std::string_view text) {
  std::uint64_t token = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, token);
  const bool is_token = problem == std::errc() && rest == end && token > 0 && token >> 53U == 0;
  return is_token ? std::optional(token) : std::nullopt;
}

int refused() {
  std::fputs("refused: somebody with a newer token has the account\n", stderr);
  return exit_stale;
}

int change(const std::string& database, const std::string& account, std::uint64_t token) {
  fenced_sqlite::Accounts accounts(database);
  accounts.add(account, 0);
  const auto balance = accounts.open(account, token);
  if (!balance) return refused();
  std::printf("balance %lld\n", static_cast<long long>(*balance));
  std::fflush(stdout);

  // Here the clerk thinks, for as long as it takes. The lease may end meanwhile.
  long long amount = 0;
  if (!(std::cin >> amount)) {
    std::fputs("no amount on standard input\n", stderr);
    return EXIT_FAILURE;
  }
  if (!accounts.write(account, *balance + amount, token)) return refused();
  std::printf("now %lld\n", static_cast<long long>(*balance) + amount);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const variable = std::getenv("REDLOCK_TOKEN");
  const auto token = parse_token(variable != nullptr ? variable : "");
  if (argc != 3 || !token) {
    std::fputs(help, stderr);
    return exit_usage;
  }
  try {
    return change(argv[1], argv[2], *token);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return EXIT_FAILURE;
  }
}
