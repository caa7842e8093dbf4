// SPDX-License-Identifier: MIT
#include "wire/script_call.hpp"

#include "wire/command_writer.hpp"
#include "wire/error_reply.hpp"

namespace redlock::wire {
void CallParts::add(const engine::Command& command, const CallContext& context) {
  const ScriptRow& row = row_of(script_of(command));
  CommandWriter keys(keys_);
  row.write_keys(keys, context, command);
  key_count_ += keys.written();
  CommandWriter arguments(arguments_);
  row.write_arguments(arguments, context, command);
  argument_count_ += arguments.written();
  ++count_;
}

void CallParts::add(const CallParts& other) {
  keys_ += other.keys_;
  arguments_ += other.arguments_;
  key_count_ += other.key_count_;
  argument_count_ += other.argument_count_;
  count_ += other.count_;
}

void CallParts::name_members(const CallContext& context) {
  CommandWriter(keys_).bulk(context.layout.marker);
  ++key_count_;
  CommandWriter(arguments_).bulk({"=", context.membership});
  ++argument_count_;
}

void CallParts::clear() {
  keys_.clear();
  arguments_.clear();
  key_count_ = argument_count_ = 0;
  count_ = 0;
}

void CallParts::write(std::string& out, const ScriptSet& scripts, engine::Form form,
                      Script script) const {
  CommandWriter writer(out, 3 + key_count_ + argument_count_);
  if (form == engine::Form::digest) {
    writer.bulk("EVALSHA").bulk(scripts.digest(script));
  } else {
    writer.bulk("EVAL").bulk(scripts.source(script));
  }
  writer.number(key_count_);
  out += keys_;
  out += arguments_;
}

void write_call(std::string& out, const ScriptSet& scripts, engine::Form form,
                const engine::Command& command, const CallContext& context) {
  CallParts parts;
  parts.add(command, context);
  parts.write(out, scripts, form, script_of(command));
}

std::optional<engine::Reply> read_element(Script script, const ReplyView& element,
                                          const Secrets& secrets, std::string_view text) {
  if (element.is(ReplyView::Kind::error)) return to_unavailable(element.text(), secrets, text);
  return row_of(script).read(element);
}

std::optional<engine::Reply> read_answer(Script script, const ReplyView& answer,
                                         const Secrets& secrets, std::string_view text) {
  if (answer.is(ReplyView::Kind::error)) {
    return is_no_script(answer.text()) ? engine::Reply(engine::NoScript{})
                                       : to_unavailable(answer.text(), secrets, text);
  }
  if (!row_of(script).many_in_a_call) return row_of(script).read(answer);
  return answer.size() == 1 ? read_element(script, answer.first(), secrets, text) : std::nullopt;
}

}  // namespace redlock::wire
