// SPDX-License-Identifier: MIT
#include "c/last_error.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

namespace redlock::c {
namespace {

constexpr bool same(redlock_status status, Errc code) noexcept {
  return static_cast<int>(status) == static_cast<int>(code);
}
static_assert(same(REDLOCK_CONTENDED, Errc::contended) && same(REDLOCK_NO_QUORUM, Errc::no_quorum));
static_assert(same(REDLOCK_TOO_LATE, Errc::too_late) && same(REDLOCK_TIMED_OUT, Errc::timed_out));
static_assert(same(REDLOCK_LOST, Errc::lost) && same(REDLOCK_CANCELLED, Errc::cancelled));
static_assert(same(REDLOCK_INVALID_ARGUMENT, Errc::invalid_argument));
static_assert(same(REDLOCK_CLOSED, Errc::closed));
static_assert(same(REDLOCK_WOULD_DEADLOCK, Errc::would_deadlock));

struct LastError {
  std::string sentence;
  std::string json;
  /// Of a failure for which there may be no memory. Null: the texts above are the last error.
  const char* literal = nullptr;
};

LastError& last_error() noexcept {
  thread_local LastError last;
  return last;
}

/// How many bytes the character at the beginning has, 0 if it is not well-formed (RFC 3629, 4).
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (!continues(1) || first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return 2;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_scalar = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  if (overlong || no_scalar || !continues(2)) return 0;
  if (first < 0xF0) return 3;
  return continues(3) ? 4 : 0;
}

void append_escaped(std::string& json, char character) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(character);
  if (character == '"' || character == '\\') {
    json += '\\';
    json += character;
  } else if (code < 0x20 || code == 0x7F) {
    json += "\\u00";
    json += digits[code / 16U];
    json += digits[code % 16U];
  } else {
    json += character;
  }
}

void append_text(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 1) {
      append_escaped(json, text.front());
    } else if (length == 0) {
      json += "\xEF\xBF\xBD";
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json += '"';
}

void append_member(std::string& json, std::string_view name, std::string_view value) {
  if (json.back() != '{') json += ", ";
  append_text(json, name);
  json += ": ";
  append_text(json, value);
}

}  // namespace

std::string to_json(const Error& error) {
  std::string json = "{\"status\": " + std::to_string(static_cast<int>(error.code));
  append_member(json, "code", to_string(error.code));
  append_member(json, "message", error.message);
  json += ", \"votes\": [";
  for (const NodeVote& vote : error.votes) {
    if (json.back() != '[') json += ", ";
    json += '{';
    append_member(json, "node", vote.node);
    append_member(json, "vote", to_string(vote.vote));
    append_member(json, "cause", to_string(vote.cause));
    append_member(json, "detail", vote.detail);
    json += '}';
  }
  return json += "]}";
}

redlock_status fail(const Error& error) {
  std::string json = to_json(error);
  LastError& last = last_error();
  last.sentence = error.message;
  last.json = std::move(json);
  last.literal = nullptr;
  return static_cast<redlock_status>(error.code);
}

redlock_status refuse(const char* sentence) {
  return fail({Errc::invalid_argument, sentence, {}});
}

redlock_status out_of_resources(const char* sentence) noexcept {
  last_error().literal = sentence;
  return REDLOCK_OUT_OF_MEMORY;
}

redlock_status fail_by_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_resources("there is no memory left");
  } catch (const std::system_error&) {
    return out_of_resources("the system has no thread or descriptor left for this program");
  } catch (...) {
    return out_of_resources("the library failed in a way that it does not know of");
  }
}

}  // namespace redlock::c

const char* redlock_last_error(void) {
  const redlock::c::LastError& last = redlock::c::last_error();
  return last.literal != nullptr ? last.literal : last.sentence.c_str();
}

const char* redlock_last_error_json(void) {
  const redlock::c::LastError& last = redlock::c::last_error();
  if (last.literal == nullptr) return last.json.c_str();
  return R"json({"status": 100, "code": "out_of_memory", "message": )json"
         R"json("a resource of this program is used up: see redlock_last_error", "votes": []})json";
}

const char* redlock_status_name(redlock_status status) {
  if (status == REDLOCK_OK) return "ok";
  if (status == REDLOCK_OUT_OF_MEMORY) return "out_of_memory";
  return redlock::to_string(static_cast<redlock::Errc>(status));
}
