// SPDX-License-Identifier: MIT
// hiredis reports each part as soon as it is complete, parents first, which is all that a flat list
// needs. It wants a pointer for each; it never looks behind ours.
#include "wire/reply_reader.hpp"

#include <hiredis/read.h>
#include <new>

#include "wire/buffer_room.hpp"

namespace redlock::wire {
namespace {

constexpr const char* too_large = "it sent a reply larger than any reply to the command can be";

}  // namespace

struct ReplyReader::Builder {
  /// No exception may pass through hiredis: next() throws it.
  template <typename Step>
  static void* guarded(const redisReadTask* task, const Step& step) noexcept {
    auto& self = *static_cast<ReplyReader*>(task->privdata);
    try {
      return step(self) ? &self : nullptr;
    } catch (const std::bad_alloc&) {
      self.no_memory_ = true;
      return nullptr;
    }
  }

  // By name: hiredis 1.x has more of them, in between. It calls the others for RESP3 alone. The
  // number of elements is an int in hiredis 0.14, a size_t in 1.x.
  static redisReplyObjectFunctions functions() {
    redisReplyObjectFunctions all{};
    all.createString = [](const redisReadTask* task, char* text, std::size_t length) {
      const auto kind =
          task->type == REDIS_REPLY_ERROR ? ReplyPart::Kind::error : ReplyPart::Kind::text;
      return guarded(task, [&](auto& self) { return self.add(kind, text, length); });
    };
    all.createArray = [](const redisReadTask* task, auto elements) {
      const auto count = static_cast<std::size_t>(elements);
      return guarded(task,
                     [&](auto& self) { return self.add_array(task->parent == nullptr, count); });
    };
    all.createInteger = [](const redisReadTask* task, long long value) {
      return guarded(task, [&](auto& self) {
        return self.add({.kind = ReplyPart::Kind::integer, .number = value});
      });
    };
    all.createNil = [](const redisReadTask* task) {
      return guarded(task, [](auto& self) { return self.add({}); });
    };
    all.freeObject = [](void* /*reply*/) {};
    return all;
  }
};

ReplyReader::ReplyReader() : reader_(nullptr, redisReaderFree) {
  static redisReplyObjectFunctions functions = Builder::functions();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->privdata = this;
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

/// A push within a reply is none.
bool ReplyReader::add_array(bool outermost, std::size_t count) {
  if (scanner_.take_push()) {
    push_ = true;
    if (!outermost) problem_ = not_redis;
  }
  return problem_.empty() && fits(1 + count, 0) &&
         add({.kind = ReplyPart::Kind::array, .number = static_cast<std::int64_t>(count)});
}

void ReplyReader::feed(std::string_view bytes) {
  const std::size_t whole = scanner_.scan(bytes, resp2_);
  if (whole == 0) return;
  redisReaderFeed(reader_.get(), resp2_.data(), whole);
  if (whole == resp2_.size()) return make_empty(resp2_);
  resp2_.erase(0, whole);
}

ReplyReader::Outcome ReplyReader::next(std::size_t limit) {
  if (!problem_.empty()) return Outcome::broken;
  if (finished_) {
    make_empty(parts_);
    make_empty(texts_);
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
  const bool too_long = !fits(1, scanner_.announced());
  problem_ = scanner_.defect() != nullptr ? scanner_.defect() : too_long ? too_large : "";
  return problem_.empty() ? Outcome::incomplete : Outcome::broken;
}

bool ReplyReader::amid_reply() const {
  return parts_.empty() ? scanner_.amid_item() : !push_;
}

}  // namespace redlock::wire
