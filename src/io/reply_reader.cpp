// SPDX-License-Identifier: MIT
// hiredis reports each part as soon as it is complete, parents first, which is all that a flat list
// needs. It wants a pointer for each; it never looks behind ours.
#include "io/reply_reader.hpp"

#include <hiredis/read.h>
#include <new>

namespace redlock::io {

struct ReplyReader::Builder {
  static ReplyReader& self(const redisReadTask* task) {
    return *static_cast<ReplyReader*>(task->privdata);
  }
  static void* result(const redisReadTask* task, bool ok) { return ok ? task->privdata : nullptr; }

  static void* string(const redisReadTask* task, char* text, std::size_t length) {
    const auto kind =
        task->type == REDIS_REPLY_ERROR ? ReplyPart::Kind::error : ReplyPart::Kind::text;
    return result(task, self(task).add(kind, text, length));
  }
  static void* array(const redisReadTask* task, int elements) {
    return result(task, self(task).add({.kind = ReplyPart::Kind::array, .number = elements}));
  }
  static void* integer(const redisReadTask* task, long long value) {
    return result(task, self(task).add({.kind = ReplyPart::Kind::integer, .number = value}));
  }
  static void* nil(const redisReadTask* task) { return result(task, self(task).add({})); }
  static void free(void* /*reply*/) {}

  static redisReplyObjectFunctions functions;
};

redisReplyObjectFunctions ReplyReader::Builder::functions = {string, array, integer, nil, free};

void ReplyReader::Free::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&Builder::functions)) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
}

bool ReplyReader::add(const ReplyPart& part) {
  if ((parts_.size() + 1) * sizeof(ReplyPart) + texts_.size() + part.length > limit_) return false;
  parts_.push_back(part);
  return true;
}

bool ReplyReader::add(ReplyPart::Kind kind, const char* text, std::size_t length) {
  if (!add({.kind = kind, .offset = texts_.size(), .length = length})) return false;
  texts_.append(text, length);
  return true;
}

void ReplyReader::feed(std::string_view bytes) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

ReplyReader::Outcome ReplyReader::next(std::size_t limit) {
  if (!problem_.empty()) return Outcome::broken;
  if (finished_) {
    parts_.clear();
    if (texts_.capacity() > limit) texts_ = {};  // a long answer to a question
    texts_.clear();
    finished_ = false;
  }
  limit_ = limit;
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    problem_ = reader_->err == REDIS_ERR_OOM
                   ? "it sent a reply larger than any reply to this can be"
                   : "it answered something that is not the Redis protocol";
    return Outcome::broken;
  }
  if (reply != nullptr) {
    finished_ = true;
    return Outcome::complete;
  }
  // A text that is announced but still arriving is not a part yet.
  if (reader_->len - reader_->pos > limit) {
    problem_ = "it sent a reply larger than any reply to this can be";
    return Outcome::broken;
  }
  return Outcome::incomplete;
}

}  // namespace redlock::io
