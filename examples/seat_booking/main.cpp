// SPDX-License-Identifier: MIT
// The story of the seat: what a quorum lock does, and what it leaves to the fencing token, shown
// with real processes. Start with story.cpp; customer.cpp is how a program uses the library.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "customer.hpp"
#include "story.hpp"

namespace {

constexpr const char* help =
    "Usage: seat_booking\n\n"
    "Starts five redis-servers on free loopback ports, lets processes race for seats over them,\n"
    "kills one, stops another, stops a holder, and tells what happens. Takes about ten seconds.\n"
    "Needs redis-server in PATH. Exit status 0 if every step happened as told, 1 otherwise.\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return seat_booking::play();
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    std::fputs(help, stdout);
    return 0;
  }
  if (arguments[0] == "--customer") {
    return seat_booking::be_customer({arguments.begin() + 1, arguments.end()});
  }
  std::fputs(help, stderr);
  return 64;
}
