// SPDX-License-Identifier: MIT
// Generous on purpose: any text that looks like USER:PASSWORD@ is hidden, also where the URI is
// misspelt. Only the bytes that other users see are changed, never the copy that the command uses.
#include "cli/secrets.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace redlock::cli {
namespace {

// Where the next URI of a list begins: behind a comma or white space, with a scheme. A comma alone
// does not end one, because it may be part of a password by mistake.
char* next_uri(char* from, char* end) {
  for (char* at = from; at != end; ++at) {
    if (*at != ',' && std::isspace(static_cast<unsigned char>(*at)) == 0) continue;
    char* const scheme = at + 1;
    char* scheme_end = scheme;
    while (std::isalpha(static_cast<unsigned char>(*scheme_end)) != 0) ++scheme_end;
    if (scheme_end != scheme && std::strncmp(scheme_end, "://", 3) == 0) return scheme;
  }
  return end;
}

bool mask_one(char* begin, char* end) {
  char* host = end;
  while (host != begin && *(host - 1) != '@') --host;
  if (host == begin) return false;
  const std::string_view scheme = "://";
  char* login = std::search(begin, host, scheme.begin(), scheme.end());
  login = login == host ? begin : login + scheme.size();
  char* const colon = std::find(login, host, ':');
  if (colon == host) return false;
  std::fill(colon + 1, host - 1, '*');
  return colon + 1 != host - 1;
}

}  // namespace

bool mask_passwords(char* text) {
  char* const end = text + std::strlen(text);
  bool found = false;
  while (text != end) {
    char* const next = next_uri(text, end);
    found = mask_one(text, next) || found;
    text = next;
  }
  return found;
}

std::string without_passwords(std::string_view text) {
  // As a whole: what is behind a blank may be the end of a password.
  std::string result(text);
  mask_passwords(result.data());
  return result;
}

bool has_password(std::string text) {
  return mask_passwords(text.data());
}

std::vector<std::string> take_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  for (int i = 1; i < argc; ++i) {
    // What follows "--" is the user's command and stays as it is.
    if (std::strcmp(argv[i], "--") == 0) break;
    mask_passwords(argv[i]);
  }
  return arguments;
}

std::string take_variable(const char* name) {
  char* const value = std::getenv(name);
  if (value == nullptr) return {};
  std::string copy = value;
  mask_passwords(value);
  return copy;
}

}  // namespace redlock::cli
