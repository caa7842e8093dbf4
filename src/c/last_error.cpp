// SPDX-License-Identifier: MIT
#include "c/last_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "text/characters.hpp"

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
  /// The texts of a failure for which there may be no memory. Null: the texts above are the last
  /// error.
  const char* literal = nullptr;
};

LastError& last_error() noexcept {
  thread_local LastError last;
  return last;
}

void append_code_unit(std::string& json, unsigned unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  json += "\\u";
  for (const int shift : {12, 8, 4, 0}) json += digits[unit >> shift & 15U];
}

void append_escaped(std::string& json, char32_t code) {
  if (code < 0x10000) return append_code_unit(json, code);
  append_code_unit(json, 0xD7C0U + (code >> 10));
  append_code_unit(json, 0xDC00U + (code & 0x3FFU));
}

void append_text(std::string& json, std::string_view text) {
  json += '"';
  while (!text.empty()) {
    const text::Character next = text::first_character(text);
    const std::size_t bytes = std::max<std::size_t>(next.bytes, 1);
    if (next.bytes == 0) {
      json += "\xEF\xBF\xBD";
    } else if (text::is_unseen(next.code)) {
      append_escaped(json, next.code);
    } else {
      if (next.code == '"' || next.code == '\\') json += '\\';
      json += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
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
    return out_of_resources("the library failed for an unknown reason");
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
