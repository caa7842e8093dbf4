// SPDX-License-Identifier: MIT
#include "admin/fences.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "admin/key_walk.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "wire/key_layout.hpp"
#include "wire/redlock_scripts.hpp"

namespace redlock::admin {
namespace {

using engine::Token;

constexpr std::size_t fences_per_round = 1000;

// Tokens follow the clocks in microseconds: more than an hour of them, in which the fences are
// compared and the new value arrives (see mend.lua).
constexpr Token tokens_meanwhile = Token{1} << 32;

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = problem == std::errc() && rest == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

std::string digits_in(const std::string& text) {
  const bool number =
      text.size() <= 20 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return number ? text : "";
}

std::optional<Token> token_in(const std::string& text) {
  const auto token = number_in<Token>(text);
  return token && *token < engine::token_limit ? token : std::nullopt;
}

using Stripes = std::vector<std::set<std::uint32_t>>;  // of each node

Result<Stripes> walk_fences(NodeQuery& query, std::vector<NodeTrouble>& troubles) {
  Stripes stripes(troubles.size());
  constexpr auto prefix = wire::redlock_layout.fence_prefix;
  auto walked = walk_keys(query, std::move(troubles), std::string(prefix) + "*",
                          [&](std::size_t node, const std::string& key) {
                            const auto stripe = number_in<std::uint32_t>(
                                std::string_view(key).substr(std::min(prefix.size(), key.size())));
                            if (stripe) stripes[node].insert(*stripe);
                            return true;
                          });
  if (!walked) return tl::make_unexpected(walked.error());
  troubles = std::move(*walked);
  return stripes;
}

/// Reads the fences whose stripes are known, in rounds.
class Reader {
 public:
  Reader(NodeQuery& query, Stripes stripes, const std::vector<NodeTrouble>& troubles)
      : query_(query), left_(std::move(stripes)), fences_(left_.size()) {
    for (std::size_t i = 0; i < left_.size(); ++i) {
      if (troubles[i].cause == Cause::none) {
        fences_[i].emplace();
      } else {
        left_[i].clear();
      }
    }
  }

  Result<std::vector<NodeFences>> run() {
    while (std::ranges::any_of(left_, [](const auto& of_node) { return !of_node.empty(); })) {
      if (auto done = round(); !done) return tl::make_unexpected(done.error());
    }
    return std::move(fences_);
  }

 private:
  Result<void> round() {
    std::vector<std::vector<QueryCommand>> commands(left_.size());
    Stripes asked(left_.size());
    for (std::size_t i = 0; i < left_.size(); ++i) {
      while (!left_[i].empty() && asked[i].size() < fences_per_round) {
        asked[i].insert(left_[i].extract(left_[i].begin()));
      }
      for (const auto stripe : asked[i]) {
        commands[i].push_back(
            {"GET", std::string(wire::redlock_layout.fence_prefix) + std::to_string(stripe)});
      }
    }
    const auto answers = query_.ask(std::move(commands), query_.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      auto answer = (*answers)[i].answers.begin();
      for (const auto stripe : asked[i]) take(i, stripe, *answer++);
    }
    return {};
  }

  void take(std::size_t node, std::uint32_t stripe, const wire::Answer& answer) {
    if (!fences_[node]) return;
    const auto trouble = trouble_of(answer, query_.nodes()[node]);
    if (trouble.cause == Cause::none) {
      if (const auto text = text_of(answer)) fences_[node]->emplace(stripe, digits_in(*text));
    } else if (trouble.detail.starts_with("WRONGTYPE")) {
      fences_[node]->emplace(stripe, "");
    } else {
      fences_[node].reset();
      left_[node].clear();
    }
  }

  NodeQuery& query_;
  Stripes left_;
  std::vector<NodeFences> fences_;
};

/// The smallest token that is above all of the past, for a fence that is damaged.
std::optional<Token> value_for(Token others, std::uint32_t may_lack, std::uint32_t quorum) {
  // The settled tokens of which the remaining nodes know nothing would need a quorum of the others.
  if (may_lack >= quorum) return std::nullopt;
  return others + tokens_meanwhile;
}

/// One stripe on all nodes.
class Stripe {
 public:
  Stripe(std::vector<NodeHealth>& nodes, const std::vector<NodeFences>& fences,
         const std::vector<bool>& remembers, std::uint32_t stripe)
      : nodes_(nodes), stripe_(stripe) {
    for (std::size_t i = 0; i < fences.size(); ++i) {
      texts_.emplace_back();
      tokens_.emplace_back();
      if (!fences[i]) continue;
      const auto found = fences[i]->find(stripe);
      if (found != fences[i]->end()) texts_[i] = found->second;
      if (!texts_[i] && !remembers[i]) continue;
      tokens_[i] = texts_[i] ? token_in(*texts_[i]) : Token{0};
    }
    remembers_ = remembers;
  }

  void compare(Token clock) {
    const auto quorum = engine::quorum_of(static_cast<std::uint32_t>(nodes_.size()));
    const Token ceiling = engine::rules::ceiling_above(std::max(clock, reached_by(quorum)));
    std::vector<std::size_t> damaged;
    Token others = clock;
    std::uint32_t may_lack = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (texts_[i] && (!tokens_[i] || *tokens_[i] > ceiling)) {
        damaged.push_back(i);
        ++may_lack;
      } else if (tokens_[i] && remembers_[i]) {
        others = std::max(others, *tokens_[i]);
      } else {
        ++may_lack;
      }
    }
    for (const std::size_t i : damaged) {
      nodes_[i].damaged_fences.push_back(
          {stripe_, *texts_[i], value_for(others, may_lack, quorum)});
    }
  }

 private:
  /// The largest token that so many nodes have reached.
  [[nodiscard]] Token reached_by(std::uint32_t quorum) const {
    std::vector<Token> tokens;
    for (const auto& token : tokens_) tokens.push_back(token.value_or(0));
    std::ranges::sort(tokens, std::greater());
    return tokens[quorum - 1];
  }

  std::vector<NodeHealth>& nodes_;
  std::uint32_t stripe_;
  std::vector<std::optional<std::string>> texts_;  // none: the node has no such fence, or is silent
  std::vector<std::optional<Token>> tokens_;
  std::vector<bool> remembers_;
};

/// For each stripe the largest of these fences that a clock, or so many nodes, explain.
std::map<std::uint32_t, Token> largest_fences(const std::vector<NodeFences>& fences,
                                              std::size_t but, std::uint32_t explain) {
  std::map<std::uint32_t, std::vector<Token>> known;
  for (std::size_t node = 0; node < fences.size(); ++node) {
    if (node == but || !fences[node]) continue;
    for (const auto& [stripe, text] : *fences[node]) {
      if (const auto token = token_in(text)) known[stripe].push_back(*token);
    }
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto clock =
      static_cast<Token>(std::chrono::microseconds(now / std::chrono::microseconds(1)).count());
  std::map<std::uint32_t, Token> largest;
  for (auto& [stripe, tokens] : known) {
    std::ranges::sort(tokens, std::greater());
    const Token by_many = tokens.size() < explain ? 0 : tokens[explain - 1];
    const Token ceiling = engine::rules::ceiling_above(std::max(clock, by_many));
    const auto sound = std::ranges::find_if(tokens, [=](Token token) { return token <= ceiling; });
    if (sound != tokens.end()) largest[stripe] = *sound;
  }
  return largest;
}

}  // namespace

bool can_be_carried(const std::vector<NodeFences>& fences, std::size_t to, std::uint32_t enough) {
  const auto read =
      std::ranges::count_if(fences, [](const auto& of_node) { return of_node.has_value(); });
  return fences[to].has_value() && read >= static_cast<std::ptrdiff_t>(enough);
}

Result<bool> carry_fences(NodeQuery& query, const std::vector<NodeHealth>& nodes, std::size_t to,
                          std::uint32_t enough, std::uint32_t explain) {
  const auto fences = read_fences(query, nodes);
  if (!fences) return tl::make_unexpected(fences.error());
  if (!can_be_carried(*fences, to, enough)) return false;
  const auto& there = (*fences)[to];
  auto left = largest_fences(*fences, to, explain);
  while (!left.empty()) {
    std::vector<std::vector<QueryCommand>> commands(nodes.size());
    while (!left.empty() && commands[to].size() < fences_per_round) {
      const auto [stripe, token] = *left.begin();
      left.erase(left.begin());
      const auto has = there->find(stripe);
      const auto key = std::string(wire::redlock_layout.fence_prefix) + std::to_string(stripe);
      const auto text = std::to_string(token);
      // A client may give it its marker meanwhile: what it then grants raises the fence, which must
      // not fall again.
      if (has == there->end()) {
        commands[to].push_back({"SET", key, text, "NX"});
      } else if (token_in(has->second).value_or(0) < token) {
        const auto at_any_time = std::to_string(engine::token_limit);
        commands[to].push_back(
            {"EVAL", std::string(wire::scripts::mend), "1", key, has->second, text, at_any_time});
      }
    }
    const auto answers = query.ask(std::move(commands), query.options().node_timeout);
    if (!answers) return tl::make_unexpected(answers.error());
    for (const auto& answer : (*answers)[to].answers) {
      if (trouble_of(answer, query.nodes()[to]).cause != Cause::none) return false;
    }
  }
  return true;
}

Result<std::vector<NodeFences>> read_fences(NodeQuery& query,
                                            const std::vector<NodeHealth>& nodes) {
  std::vector<NodeTrouble> troubles;
  for (const auto& node : nodes) troubles.push_back(node.trouble);
  auto stripes = walk_fences(query, troubles);
  if (!stripes) return tl::make_unexpected(stripes.error());
  return Reader(query, std::move(*stripes), troubles).run();
}

void compare_fences(std::vector<NodeHealth>& nodes, const std::vector<NodeFences>& fences,
                    const std::vector<bool>& remembers, std::chrono::microseconds clock) {
  std::set<std::uint32_t> stripes;
  std::uint32_t read = 0;
  for (const auto& of_node : fences) {
    if (!of_node) continue;
    ++read;
    for (const auto& [stripe, text] : *of_node) stripes.insert(stripe);
  }
  if (read < engine::quorum_of(static_cast<std::uint32_t>(nodes.size()))) return;
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].fences_compared = fences[i].has_value();
  for (const auto stripe : stripes) {
    Stripe(nodes, fences, remembers, stripe)
        .compare(static_cast<Token>(std::max(clock.count(), std::int64_t{0})));
  }
}

}  // namespace redlock::admin
