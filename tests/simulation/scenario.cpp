// SPDX-License-Identifier: MIT
#include "simulation/scenario.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#include "simulation/bugs.hpp"

namespace redlock::simulation {
namespace {

using Client = Stage::Client;
using Words = std::vector<std::string>;
using std::chrono::milliseconds;

Words split(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// "250ms", "10s", "+40s", "-3s".
milliseconds duration(const std::string& text) {
  std::size_t digits = 0;
  const std::int64_t count = std::stoll(text, &digits);
  if (text.substr(digits) == "ms") return milliseconds(count);
  if (text.substr(digits) == "s") return milliseconds(count * 1000);
  throw std::runtime_error("no duration: " + text);
}

std::vector<Stage::Node> nodes(const Stage& stage, Words::const_iterator begin,
                               Words::const_iterator end) {
  std::vector<Stage::Node> list;
  for (; begin != end; ++begin) {
    if (*begin == "all") {
      for (Stage::Node node = 0; node < stage.node_count(); ++node) list.push_back(node);
    } else {
      list.push_back(static_cast<Stage::Node>(std::stoul(*begin)));
    }
  }
  return list;
}

/// What is said of a lease behind these words.
engine::AcquireRequest terms(const Words& words, std::size_t behind) {
  engine::AcquireRequest what{.name = {}, .lease = milliseconds(10'000), .max_hold = std::nullopt};
  for (std::size_t i = behind; i < words.size(); ++i) {
    if (words[i] == "renew") {
      what.renew = true;
    } else if (words[i] == "lease") {
      what.lease = duration(words.at(++i));
    } else if (words[i] == "validity") {
      what.min_validity = duration(words.at(++i));
    } else if (words[i] == "wait") {
      what.wait = duration(words.at(++i));
    } else {
      throw std::runtime_error("no such terms: " + words[i]);
    }
  }
  return what;
}

void acquire(Stage& stage, Client& client, const Words& words) {
  engine::AcquireRequest what = terms(words, 3);
  what.name = std::make_shared<const std::string>(words.at(2));
  stage.acquire(client, std::move(what));
}

/// Where something begins: the client acquires the lock over these nodes, and nothing is told.
void hold(Stage& stage, Client& client, const Words& words) {
  const auto on = std::ranges::find(words, "on");
  if (on == words.end()) throw std::runtime_error("on which nodes?");
  auto told = stage.take_events();
  acquire(stage, client, Words(words.begin(), on));
  for (const auto node : nodes(stage, on + 1, words.end())) stage.drain(client, node);
  if (client.valid_until == Instant::min()) throw std::runtime_error("it has no lease");
  stage.take_events();
  for (std::string& event : told) stage.say(std::move(event));
}

/// "A -> 0 1", "0 1 -> A", "A <-> 0 1": a message each, an answer each, both; "A <=> 0 1":
/// everything that is under way.
bool messages(Stage& stage, const Words& words) {
  const auto arrow = std::ranges::find_if(words, [](const std::string& word) {
    return word == "->" || word == "<->" || word == "<=>";
  });
  if (arrow == words.end()) return false;
  const bool late = words[0] == "late";
  const bool to_node = arrow - words.begin() == (late ? 2 : 1) &&
                       std::isdigit(static_cast<unsigned char>(words[late ? 1 : 0][0])) == 0 &&
                       words[0] != "all";
  if (!to_node) {
    Client& client = stage.client(words.back());
    for (const auto node : nodes(stage, words.begin(), arrow)) stage.answer(node, client);
    return true;
  }
  Client& client = stage.client(words[late ? 1 : 0]);
  for (const auto node : nodes(stage, arrow + 1, words.end())) {
    if (late) {
      stage.deliver_late(client, node);
    } else if (*arrow == "<=>") {
      stage.drain(client, node);
    } else {
      stage.deliver(client, node);
      if (*arrow == "<->") stage.answer(node, client);
    }
  }
  return true;
}

void node_step(Stage& stage, const Words& words) {
  static const std::map<std::string, Ailment> ailments = {{"well", Ailment::none},
                                                          {"busy", Ailment::busy}};
  const auto node = static_cast<Stage::Node>(std::stoul(words.at(1)));
  if (words.at(2) == "is") {
    stage.node(node).ailment = ailments.at(words.at(3));
    return;
  }
  if (words[2] == "clock") return stage.step_clock(node, duration(words.at(3)));
  if (words[2] == "has-foreign") return stage.node(node).put_foreign(words.at(3));
  if (words[2] == "loses-foreign") return stage.node(node).remove_foreign(words.at(3));
  if (words[2] != "forgets") throw std::runtime_error("a node cannot do that");
  if (words.at(3) == "scripts") return stage.forget_scripts(node);
  stage.node(node).keys.clear();
}

using Step = std::function<void(Stage&, Client&, const Words&)>;

/// By the second word; the first is the client.
const std::map<std::string, Step>& client_steps() {
  static const std::map<std::string, Step> steps = {
      {"acquires", acquire},
      {"holds", hold},
      {"extends", [](Stage& s, Client& c, const Words& w) { s.extend(c, duration(w.at(2))); }},
      {"enters",
       [](Stage& s, Client& c, const Words& w) {
         const auto what = terms(w, 2);
         s.enter(c, {.lease = what.lease, .renew = what.renew});
       }},
      {"leaves", [](Stage& s, Client& c, const Words&) { s.leave(c); }},
      {"releases", [](Stage& s, Client& c, const Words&) { s.release(c); }},
      {"cancels", [](Stage& s, Client& c, const Words&) { s.cancel(c); }},
      {"takes-over-from",
       [](Stage& s, Client& c, const Words& w) { s.take_over(s.client(w.at(2)), c); }},
      {"force-releases",
       [](Stage& s, Client& c, const Words& w) { s.force(c, s.client(w.at(2))); }},
      {"loses",
       [](Stage& s, Client& c, const Words& w) {
         for (const auto n : nodes(s, w.begin() + 2, w.end())) s.disconnect(c, n);
       }},
      {"connects",
       [](Stage& s, Client& c, const Words& w) {
         for (const auto n : nodes(s, w.begin() + 2, w.end())) s.connect(c, n);
       }},
      {"stops", [](Stage& s, Client& c, const Words&) { s.pause(c); }},
      {"goes-on", [](Stage& s, Client& c, const Words&) { s.resume(c); }},
      {"reads-clocks", [](Stage& s, Client& c, const Words&) { s.read_clocks(c); }},
      {"reads", [](Stage& s, Client& c, const Words&) { s.read(c); }},
      {"writes", [](Stage& s, Client& c, const Words&) { s.write(c); }},
  };
  return steps;
}

void play_step(Stage& stage, const std::string& line) {
  const Words words = split(line);
  if (messages(stage, words)) return;
  if (words[0] == "pass") return stage.pass(duration(words.at(1)));
  if (words[0] == "node") return node_step(stage, words);
  if (line == "who is valid") return stage.who_is_valid();
  if (words[0] == "counts") {
    const std::string counts = stage.counts(words.at(2));
    if (words.size() == 3) return stage.say("counts: " + counts);
    if (line.ends_with(" are " + counts)) return;
    throw Violation{"counts are what they must be", counts};
  }
  if (words[0] == "who" && words.at(1) == "has") {
    const std::string nodes = stage.who_has(words.at(2));
    if (words.size() == 3) return stage.say("on nodes: " + nodes);
    if (line.ends_with(" on " + nodes)) return;
    throw Violation{"locks are where they must be", nodes};
  }
  const auto step = client_steps().find(words.at(1));
  if (step == client_steps().end()) throw std::runtime_error("no such step");
  step->second(stage, stage.client(words[0]), words);
}

void read_setting(Scenario& scenario, const std::string& line) {
  const Words words = split(line);
  engine::Config& engine = scenario.settings.engine;
  if (words[0] == "nodes") {
    engine.nodes = static_cast<std::uint32_t>(std::stoul(words.at(1)));
  } else if (words[0] == "node-timeout") {
    engine.node_timeout = duration(words.at(1));
  } else if (line == "exclusion cannot be promised here") {
    scenario.settings.judged.exclusion = scenario.settings.judged.possession = false;
    scenario.settings.judged.clocks = false;
  } else if (line == "clocks cannot be promised here") {
    scenario.settings.judged.clocks = scenario.settings.judged.possession = false;
  } else if (line == "tokens cannot be promised here") {
    scenario.settings.judged.tokens = false;
  } else if (words[0] == "with" && words.at(2) == "breaks:") {
    if (!is_bug(words.at(1))) throw std::runtime_error("no such bug: " + words[1]);
    scenario.breaks.push_back({words[1], line.substr(line.find(':') + 2)});
  } else {
    throw std::runtime_error("no such setting: " + line);
  }
}

/// Takes one line of the body into the block that it belongs to.
void read_line(Scenario& scenario, bool& in_events, const std::string& line) {
  if (line.empty()) {
    scenario.blocks.emplace_back();
    in_events = false;
  } else if (line == "----") {
    in_events = true;
  } else {
    auto& block = scenario.blocks.back();
    (in_events ? block.expected : block.steps).push_back(line);
  }
}

}  // namespace

Scenario read_scenario(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  Scenario scenario;
  scenario.settings.engine.clock_floor = false;
  int number = 0;
  bool in_head = true;
  bool in_events = false;
  try {
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (in_head) {
        scenario.head.push_back(line);
        if (line == "begin") {
          in_head = false;
          scenario.blocks.emplace_back();
        } else if (!line.empty() && line[0] != '#') {
          read_setting(scenario, line);
        }
      } else {
        read_line(scenario, in_events, line);
      }
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{}:{}: {}", file.string(), number, error.what()));
  }
  std::erase_if(scenario.blocks, [](const auto& block) { return block.steps.empty(); });
  return scenario;
}

std::vector<std::vector<std::string>> play(const Scenario& scenario) {
  Stage stage(scenario.settings);
  std::vector<std::vector<std::string>> events;
  for (const Scenario::Block& block : scenario.blocks) {
    for (const std::string& step : block.steps) {
      if (step[0] == '#') continue;
      try {
        play_step(stage, step);
      } catch (const Violation& violation) {
        events.push_back(stage.take_events());
        events.back().push_back("BROKEN: " + violation.rule);
        return events;
      } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("step '{}': {}", step, error.what()));
      }
    }
    events.push_back(stage.take_events());
  }
  return events;
}

std::string to_text(const Scenario& scenario, const std::vector<std::vector<std::string>>& events) {
  std::string text;
  for (const std::string& line : scenario.head) text += line + "\n";
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i > 0) text += "\n";
    for (const std::string& step : scenario.blocks[i].steps) text += step + "\n";
    text += "----\n";
    for (const std::string& event : events[i]) text += event + "\n";
  }
  return text;
}

}  // namespace redlock::simulation
