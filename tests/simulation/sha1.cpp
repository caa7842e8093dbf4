// SPDX-License-Identifier: MIT
#include "simulation/sha1.hpp"

#include <array>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <stdexcept>

namespace redlock::simulation {

std::string sha1(std::string_view text) {
  std::array<unsigned char, 20> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("this system's OpenSSL has no SHA-1");
  }
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace redlock::simulation
