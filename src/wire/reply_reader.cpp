// SPDX-License-Identifier: MIT
// hiredis reports each part as soon as it is complete, parents first, which is all that a flat list
// needs. It wants a pointer for each; it never looks behind ours.
#include "wire/reply_reader.hpp"

#include <hiredis/read.h>
#include <new>
#include <utility>

#include "wire/resp3.hpp"

namespace redlock::wire {
namespace {

constexpr std::size_t longest_kept = std::size_t{64} << 10;  // room for what comes next

constexpr const char* not_redis = "its answer is not in the Redis protocol";
constexpr const char* too_large = "it sent a reply larger than any reply to the command can be";
constexpr const char* long_line = "it sent a line longer than any line of a reply";

}  // namespace

struct ReplyReader::Builder {
  static ReplyReader& self(const redisReadTask* task) {
    return *static_cast<ReplyReader*>(task->privdata);
  }
  static void* result(const redisReadTask* task, bool ok) { return ok ? task->privdata : nullptr; }
  /// No exception may pass through hiredis: next() throws it.
  template <typename Step>
  static void* guarded(const redisReadTask* task, const Step& step) noexcept {
    try {
      return result(task, step());
    } catch (const std::bad_alloc&) {
      self(task).no_memory_ = true;
      return nullptr;
    }
  }

  static void* string(const redisReadTask* task, char* text, std::size_t length) {
    const auto kind =
        task->type == REDIS_REPLY_ERROR ? ReplyPart::Kind::error : ReplyPart::Kind::text;
    return guarded(task, [&] { return self(task).add(kind, text, length); });
  }
  // An int in hiredis 0.14, a size_t in 1.x.
  template <typename Count>
  static void* array(const redisReadTask* task, Count elements) {
    const auto count = static_cast<std::size_t>(elements);
    return guarded(task, [&] {
      return self(task).begin_array(task->parent == nullptr) && self(task).fits(1 + count, 0) &&
             self(task).add(
                 {.kind = ReplyPart::Kind::array, .number = static_cast<std::int64_t>(count)});
    });
  }
  static void* integer(const redisReadTask* task, long long value) {
    return guarded(
        task, [&] { return self(task).add({.kind = ReplyPart::Kind::integer, .number = value}); });
  }
  static void* nil(const redisReadTask* task) {
    return guarded(task, [&] { return self(task).add({}); });
  }
  static void free(void* /*reply*/) {}

  // By name: hiredis 1.x has more of them, in between. It calls the others for RESP3 alone.
  static redisReplyObjectFunctions functions() {
    redisReplyObjectFunctions all{};
    all.createString = string;
    all.createArray = array;
    all.createInteger = integer;
    all.createNil = nil;
    all.freeObject = free;
    return all;
  }
};

void ReplyReader::FreeReader::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader() {
  static redisReplyObjectFunctions functions = Builder::functions();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
}

/// False: a push within a reply.
bool ReplyReader::begin_array(bool outermost) {
  if (!scanner_.take_push(arrays_++)) return true;
  push_ = true;
  if (!outermost) problem_ = not_redis;
  return outermost;
}

/// Whether so much more may belong to the reply.
bool ReplyReader::fits(std::size_t parts, std::uint64_t text) const {
  const std::size_t taken = (parts_.size() + parts) * sizeof(ReplyPart) + texts_.size();
  return taken <= limit_ && text <= limit_ - taken;
}

bool ReplyReader::add(const ReplyPart& part) {
  if (!fits(1, part.length)) return false;
  parts_.push_back(part);
  return true;
}

bool ReplyReader::add(ReplyPart::Kind kind, const char* text, std::size_t length) {
  if (!add({.kind = kind, .offset = texts_.size(), .length = length})) return false;
  texts_.append(text, length);
  return true;
}

void ReplyReader::feed(std::string_view bytes) {
  if (scanner_.defect() != ItemScanner::Defect::none) return;
  const std::size_t whole = scanner_.scan(bytes);
  if (whole > 0 && !unfinished_.empty()) {
    hand_over(unfinished_.append(bytes.substr(0, whole)));
    if (unfinished_.capacity() > longest_kept) unfinished_ = {};
    unfinished_.clear();
  } else if (whole > 0) {
    hand_over(bytes.substr(0, whole));
  }
  unfinished_.append(bytes.substr(whole));
}

void ReplyReader::hand_over(std::string_view items) {
  if (scanner_.take_resp3()) {
    if (as_resp2_.capacity() > longest_kept) as_resp2_ = {};
    as_resp2_.clear();
    append_as_resp2(items, as_resp2_);
    items = as_resp2_;
  }
  redisReaderFeed(reader_.get(), items.data(), items.size());
}

ReplyReader::Outcome ReplyReader::next(std::size_t limit) {
  if (!problem_.empty()) return Outcome::broken;
  if (finished_) {
    parts_.clear();
    if (texts_.capacity() > limit) texts_ = {};  // a long answer to a question
    texts_.clear();
    finished_ = push_ = false;
  }
  limit_ = limit;
  void* reply = nullptr;
  const int status = redisReaderGetReply(reader_.get(), &reply);
  if (no_memory_) throw std::bad_alloc();
  if (status != REDIS_OK) {
    if (problem_.empty()) problem_ = reader_->err == REDIS_ERR_OOM ? too_large : not_redis;
    return Outcome::broken;
  }
  if (reply != nullptr) {
    finished_ = true;
    return push_ ? Outcome::push : Outcome::complete;
  }
  if (scanner_.defect() == ItemScanner::Defect::not_redis) {
    problem_ = not_redis;
  } else if (scanner_.defect() == ItemScanner::Defect::long_line) {
    problem_ = long_line;
  } else if (!fits(1, scanner_.announced())) {
    problem_ = too_large;
  }
  return problem_.empty() ? Outcome::incomplete : Outcome::broken;
}

bool ReplyReader::amid_reply() const {
  if (!parts_.empty()) return !push_;
  return !unfinished_.empty() && unfinished_.front() != '>';
}

}  // namespace redlock::wire
