// SPDX-License-Identifier: MIT
// The smallest program that uses the library: asking for a client without nodes is an error with a
// sentence, and needs no server. Each way of finding and linking the library builds this file.
#include <iostream>
#include <system_error>

#include <redlock/redlock.hpp>

int main() {
  const auto client = redlock::Client::create(redlock::ClientOptions{});
  if (client) {
    std::cerr << "a client without nodes was accepted\n";
    return 1;
  }
  const redlock::Error& error = client.error();
  std::cout << redlock::to_string(error.code) << ": " << error.message << '\n';
  const bool as_promised = error.code == redlock::Errc::invalid_argument &&
                           make_error_code(error.code) == std::errc::invalid_argument &&
                           error.message.find("node") != std::string::npos;
  return as_promised ? 0 : 1;
}
