// SPDX-License-Identifier: MIT
// What a command replies, told to whoever asked: the bytes of a connection, or a script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::simulation {

class Reply {
 public:
  virtual void integer(std::int64_t number) = 0;
  virtual void bulk(std::string_view text) = 0;
  virtual void status(std::string_view text) = 0;
  /// With the upper-case word that Redis puts first.
  virtual void error(std::string_view text) = 0;
  virtual void null() = 0;
  /// So many elements follow.
  virtual void array(std::size_t elements) = 0;
  /// So many pairs follow.
  virtual void map(std::size_t pairs) = 0;

 protected:
  ~Reply() = default;
};

/// As bytes, in one of the two versions of RESP.
class RespReply final : public Reply {
 public:
  RespReply(std::string& out, bool resp3) : out_(out), resp3_(resp3) {}

  void integer(std::int64_t number) override { head(':', number); }
  void bulk(std::string_view text) override {
    head('$', static_cast<std::int64_t>(text.size()));
    out_ += text;
    out_ += "\r\n";
  }
  void status(std::string_view text) override { line('+', text); }
  void error(std::string_view text) override { line('-', text); }
  void null() override { line(resp3_ ? '_' : '$', resp3_ ? "" : "-1"); }
  void array(std::size_t elements) override { head('*', static_cast<std::int64_t>(elements)); }
  void map(std::size_t pairs) override {
    head(resp3_ ? '%' : '*', static_cast<std::int64_t>(resp3_ ? pairs : 2 * pairs));
  }
  /// What was not asked for.
  void push(std::size_t elements) { head(resp3_ ? '>' : '*', static_cast<std::int64_t>(elements)); }
  /// Text for people.
  void verbatim(std::string_view text) {
    if (!resp3_) return bulk(text);
    head('=', static_cast<std::int64_t>(text.size()) + 4);
    out_ += "txt:";
    out_ += text;
    out_ += "\r\n";
  }

 private:
  void line(char type, std::string_view text) {
    out_ += type;
    out_ += text;
    out_ += "\r\n";
  }
  void head(char type, std::int64_t number) { line(type, std::to_string(number)); }

  std::string& out_;
  bool resp3_;
};

}  // namespace redlock::simulation
