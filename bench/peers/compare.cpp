// SPDX-License-Identifier: MIT
// This library and its peers on the same five nodes, in the same run, in turns: what a lock costs,
// and what is left of it when nodes are stopped, killed or far away, when many want one lock, and
// when its holder dies. README.md beside this says how a peer's program is asked. Writes a record,
// of which docs/write_tables.sh makes the tables and docs/draw_peers.sh the plot.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <regex>
#include <sys/utsname.h>
#include <thread>

#include "bench/peers/scene.hpp"
#include "bench/rounds.hpp"

namespace {

using peers::Clock;
using peers::Figures;
using peers::json;
using peers::NodeFault;
using peers::On;
using peers::Peer;
using peers::Program;
using peers::Scene;
using peers::Trouble;
using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace std::string_literals;

constexpr seconds patience(45);  // for what a call takes longer than it should
constexpr milliseconds lease(10'000);
constexpr milliseconds short_lease(3'000);

struct Lengths {
  int rounds = 5;
  milliseconds round{800};
  milliseconds warm{1'500};  // twice
};

/// A peer in a scene.
struct Seat {
  explicit Seat(Peer& of) : peer(&of) {}

  /// Does something with the program, unless there was trouble before.
  template <typename Work>
  void attempt(Work&& work) {
    if (!program) return;
    try {
      work(*program);
    } catch (const Trouble& trouble) {
      figures.trouble = trouble.what();
      program.reset();
    }
  }
  void start(Scene& scene) {
    try {
      program.emplace(scene.start(*peer));
    } catch (const Trouble& trouble) {
      figures.trouble = trouble.what();
    }
  }
  /// Without figures: connections, scripts and compiled code are there from here on.
  void warm(milliseconds length) {
    attempt([&](Program& one) {
      for (const int callers : {8, 1}) {
        one.order(fmt::format("run {} {} 0 {}-warm- -", length.count(), callers, peer->tag()));
        one.answer_within(length + patience);
      }
    });
  }
  void run(milliseconds length, int callers, const char* name, Figures& into) {
    attempt([&](Program& one) {
      one.order(fmt::format("run {} {} 0 {}-{} -", length.count(), callers, peer->tag(), name));
      into.add({one.answer_within(length + patience).value}, length);
    });
  }

  Peer* peer;
  std::optional<Program> program;
  Figures figures;
  Figures crowd;
  std::string untrue;    // what it returns without a quorum
  bool is_slow = false;  // a call takes seconds: one round of it is enough
};

std::string rounded(double value) {
  if (value >= 10'000) return fmt::format("{:.0f}", std::round(value / 10) * 10);
  if (value < 1) return fmt::format("{:.2f}", value);
  return value < 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string word_for(const Figures& figures) {
  if (figures.trouble.starts_with("hangs")) return "hangs";
  return figures.trouble.empty() ? "fails" : "ends";
}

/// What to put in a cell when there are no figures, and a note that says more.
std::string words_for(Peer& peer, const Figures& figures, const std::string& scene) {
  const std::string& why = figures.trouble.empty() ? figures.error : figures.trouble;
  peer.notes.push_back(fmt::format("{}: {}", scene, why.empty() ? "no grant" : why));
  return word_for(figures);
}

void note_failures(Peer& peer, const Figures& figures, const std::string& scene) {
  if (figures.failed > 0) {
    peer.notes.push_back(fmt::format("{}: {} calls failed, {} were granted: {}", scene,
                                     figures.failed, figures.acquire.size(), figures.error));
  }
  if (!figures.trouble.empty()) {
    peer.notes.push_back(fmt::format("{}: after {} calls that were granted it {}", scene,
                                     figures.acquire.size(), figures.trouble));
  }
  if (!figures.release.empty() && figures.release.quantile(1) > 1e6) {
    peer.notes.push_back(fmt::format("{}: a release takes up to {:.1f} s", scene,
                                     figures.release.quantile(1) / 1e6));
  }
  if (figures.overlaps > 0) {
    peer.notes.push_back(
        fmt::format("{}: two held the lock at once, {} times", scene, figures.overlaps));
  }
}

bool is_lock(const Peer& peer) {
  return peer.is_lock();
}

class Comparison {
 public:
  Comparison(std::vector<Peer>& peers, Lengths lengths) : peers_(peers), lengths_(lengths) {}

  void healthy() {
    Scene scene(peers_, lease);
    std::vector<Seat> seats = seated(
        scene, [](const Peer&) { return true; }, lengths_.warm);
    rounds([&] {
      for (Seat& seat : seats) seat.run(lengths_.round, 1, "alone", seat.figures);
      for (Seat& seat : seats) seat.run(lengths_.round, 64, "each-", seat.crowd);
    });
    for (Seat& seat : seats) {
      hold(scene, seat, "five nodes");
      put(seat, "acquire", "healthy", [](const Figures& all) { return all.acquire.median(); });
      put(seat, "release", "", [](const Figures& all) { return all.release.median(); });
      put(seat, "cycles", "", [](const Figures& all) { return all.rates.median(); });
      std::swap(seat.figures, seat.crowd);
      put(seat, "crowd", "64 callers", [](const Figures& all) { return all.rates.median(); });
    }
  }

  /// Two of five nodes, then a third one.
  void faulty(NodeFault fault) {
    const std::string column = fault == NodeFault::stopped ? "stopped" : "killed";
    const std::string what = "two nodes " + column;
    Scene scene(peers_, lease);
    std::vector<Seat> seats = seated(scene, is_lock, lengths_.warm);
    for (const std::size_t node : {1U, 3U}) scene.befall(fault, node);
    rounds([&] {
      for (Seat& seat : seats) seat.run(2 * lengths_.round, 1, "alone", seat.figures);
    });
    for (Seat& seat : seats) {
      hold(scene, seat, what);
      put(seat, column, what, [](const Figures& all) { return all.acquire.median() / 1000; });
      if (!seat.figures.acquire.empty()) {
        seat.peer->cells[column + "_longest"] = rounded(seat.figures.acquire.quantile(1) / 1000);
        seat.peer->cells[column + "_rate"] = rounded(seat.figures.rates.median());
        if (!seat.figures.trouble.empty()) {
          seat.peer->cells[column + "_then"] = word_for(seat.figures);
        }
      }
    }
    if (fault == NodeFault::killed) return;
    scene.befall(fault, 4);
    no_quorum(scene, seats);
  }

  void slow() {
    Scene scene(peers_, lease);
    scene.delay(milliseconds(5));
    std::vector<Seat> seats = seated(
        scene, [](const Peer&) { return true; }, lengths_.warm);
    rounds([&] {
      for (Seat& seat : seats) seat.run(lengths_.round, 1, "alone", seat.figures);
    });
    for (Seat& seat : seats) {
      put(seat, "slow", "10 ms a node",
          [](const Figures& all) { return all.acquire.median() / 1000; });
    }
  }

  /// 32 callers in four processes want one lock, and keep it for 5 ms.
  void contended() {
    Scene scene(peers_, lease);
    const auto wanted = [](const Peer& peer) {
      return peer.is_lock() && peer.name != "redlock, callback";
    };
    std::vector<Seat> seats = seated(scene, wanted, lengths_.warm / 2);
    std::vector<std::vector<Program>> others;
    for (Seat& seat : seats) {
      auto& more = others.emplace_back();
      seat.attempt([&](Program&) {
        for (int i = 0; i < 3; ++i) {
          more.push_back(scene.start(*seat.peer));
          more.back().order(fmt::format("run 500 2 0 {}-more-{}- -", seat.peer->tag(), i));
          more.back().answer_within(patience);
        }
      });
    }
    const milliseconds length = 4 * lengths_.round;
    rounds([&] {
      for (std::size_t i = 0; i < seats.size(); ++i) {
        const std::string tag = seats[i].peer->tag();
        const auto order =
            fmt::format("run {} 8 5 {}-wanted {}", length.count(), tag, scene.guard(tag));
        seats[i].attempt([&](Program& first) {
          std::vector<Program*> all{&first};
          for (Program& other : others[i]) all.push_back(&other);
          for (Program* one : all) one->order(order);
          std::vector<json> answers;
          for (Program* one : all) answers.push_back(one->answer_within(length + patience).value);
          merge(seats[i].figures, answers, length);
        });
      }
    });
    for (Seat& seat : seats) {
      const std::string name = "32 callers of one name";
      put(seat, "contended", name, [](const Figures& all) { return all.rates.median(); });
      if (seat.figures.acquire.empty()) continue;
      put(seat, "waited", "", [](const Figures& all) { return all.acquire.quantile(0.99) / 1000; });
      const auto [fewest, most] = std::ranges::minmax(seat.figures.grants);
      seat.peer->cells["fewest"] = std::to_string(fewest);
      seat.peer->cells["most"] = std::to_string(most);
    }
  }

  /// How long after the end of a killed holder's lease the one that waits has the lock. All peers
  /// at once: most of the time nothing happens.
  void holder_killed() {
    std::map<std::string, bench::Samples> late;
    for (int round = 0; round < lengths_.rounds; ++round) {
      Scene scene(peers_, short_lease);
      std::vector<Seat> holders = seated(scene, is_lock, milliseconds(200));
      std::vector<Seat> waiters = seated(scene, is_lock, milliseconds(200));
      std::vector<std::optional<Clock::time_point>> end(holders.size());
      for (std::size_t i = 0; i < holders.size(); ++i) {
        holders[i].attempt([&](Program& holder) {
          holder.order(fmt::format("hold {}-killed", waiters[i].peer->tag()));
          const auto held = holder.answer_within(patience);
          if (held.value.value("held", false)) end[i] = held.at + short_lease;
        });
        if (end[i]) {
          waiters[i].attempt([&](Program& one) {
            one.order(fmt::format("hold {}-killed", waiters[i].peer->tag()));
          });
        }
      }
      std::this_thread::sleep_for(milliseconds(500));
      for (Seat& holder : holders) holder.program.reset();
      await(waiters, end, late);
    }
    for (Peer& peer : peers_) {
      const auto found = late.find(peer.name);
      if (found == late.end()) continue;
      const double median = found->second.median() / 1000;
      peer.cells["expiry"] = fmt::format("{:.0f}", median);
      peer.cells["expiry_longest"] = fmt::format("{:.0f}", found->second.quantile(1) / 1000);
    }
  }

 private:
  template <typename Wanted>
  std::vector<Seat> seated(Scene& scene, Wanted&& wanted, milliseconds warm) {
    std::vector<Seat> seats;
    for (Peer& peer : peers_) {
      if (wanted(peer)) seats.emplace_back(peer);
    }
    for (Seat& seat : seats) seat.start(scene);
    for (Seat& seat : seats) seat.warm(warm);
    return seats;
  }

  template <typename Work>
  void rounds(Work&& work) const {
    for (int round = 0; round < lengths_.rounds; ++round) work();
  }

  template <typename Value>
  static void put(Seat& seat, const std::string& column, const std::string& scene, Value&& value) {
    const bool any = !seat.figures.acquire.empty();
    if (any && !scene.empty()) note_failures(*seat.peer, seat.figures, scene);
    if (any && column == "release" && seat.figures.release.empty()) return;
    if (!seat.untrue.empty()) {
      seat.peer->cells[column] = seat.untrue;
    } else if (any) {
      seat.peer->cells[column] = rounded(value(seat.figures));
    } else if (!scene.empty()) {
      seat.peer->cells[column] = words_for(*seat.peer, seat.figures, scene);
    }
  }

  /// What one call says, and what the nodes have to show for it.
  static void hold(const Scene& scene, Seat& seat, const std::string& what) {
    if (!seat.peer->is_lock() || seat.peer->on == On::etcd) return;
    seat.attempt([&](Program& one) {
      const std::string name = seat.peer->tag() + "-checked";
      one.order("hold " + name);
      const auto answer = one.answer_within(patience);
      const std::size_t nodes = scene.nodes_with(name);
      const std::size_t enough = seat.peer->on == On::quorum ? 3 : 1;
      const bool held = answer.value.value("held", false);
      if (held && nodes < enough) {
        seat.untrue = fmt::format("true, on {} of 5", nodes);
        seat.peer->notes.push_back(
            fmt::format("{}: returns true with the lock on {} of 5 nodes", what, nodes));
      }
      if (!held) return;
      one.order("release");
      one.answer_within(patience);
    });
  }

  static void no_quorum(const Scene& scene, std::vector<Seat>& seats) {
    const auto start = Clock::now();
    for (Seat& seat : seats) {
      seat.attempt([&](Program& one) { one.order("hold " + seat.peer->tag() + "-unheld"); });
    }
    for (Seat& seat : seats) {
      std::string& cell = seat.peer->cells["none"];
      if (!seat.program) {
        cell = word_for(seat.figures);  // with two nodes already
        continue;
      }
      try {
        const auto answer = seat.program->answer_by(start + patience);
        if (!answer) {
          cell = fmt::format("waits > {} s", patience.count());
          continue;
        }
        const double after = answer->value.value("us", 0.0) / 1e6;
        const bool held = answer->value.value("held", false);
        cell = fmt::format("{} after {:.1f} s", held ? "TRUE" : "fails", after);
        const std::string text = answer->value.value("error", "");
        seat.peer->notes.push_back(
            held ? fmt::format("three nodes stopped: returns true, with the lock on {} of 5 nodes",
                               scene.nodes_with(seat.peer->tag() + "-unheld"))
                 : "three nodes stopped: " + text);
      } catch (const Trouble& trouble) {
        cell = "ends";
        seat.peer->notes.push_back(fmt::format("three nodes stopped: {}", trouble.what()));
      }
    }
  }

  /// Callers of several processes are so many callers.
  static void merge(Figures& into, std::vector<json> answers, milliseconds length) {
    json& all = answers.front()["grants"];
    for (std::size_t i = 1; i < answers.size(); ++i) {
      for (const auto& one : answers[i].value("grants", json::array())) all.push_back(one);
      answers[i].erase("grants");
    }
    into.add(answers, length);
  }

  /// Until all waiters have the lock; one that gave up begins again.
  static void await(std::vector<Seat>& waiters,
                    const std::vector<std::optional<Clock::time_point>>& end,
                    std::map<std::string, bench::Samples>& late) {
    const auto deadline = Clock::now() + patience;
    std::vector<bool> done(waiters.size());
    for (std::size_t i = 0; i < waiters.size(); ++i) done[i] = !end[i] || !waiters[i].program;
    while (std::ranges::count(done, false) > 0 && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      for (std::size_t i = 0; i < waiters.size(); ++i) {
        if (done[i]) continue;
        waiters[i].attempt([&](Program& one) {
          const auto answer = one.answer_by(Clock::now());
          if (!answer) return;
          done[i] = answer->value.value("held", false);
          if (done[i]) late[waiters[i].peer->name].add(answer->at - *end[i]);
          if (!done[i]) one.order(fmt::format("hold {}-killed", waiters[i].peer->tag()));
        });
        if (!waiters[i].program) done[i] = true;
      }
    }
    for (std::size_t i = 0; i < waiters.size(); ++i) {
      if (!waiters[i].figures.trouble.empty() || !done[i]) {
        waiters[i].peer->cells["expiry"] = "never";
        waiters[i].peer->notes.push_back("holder killed: the waiter never has the lock " +
                                         waiters[i].figures.trouble);
      }
    }
  }

  std::vector<Peer>& peers_;
  Lengths lengths_;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, '\t');) parts.push_back(part);
  return parts;
}

/// Ours, the floor, and those of the list that build.sh wrote; lines that say who is left out.
std::vector<Peer> read_peers(const std::string& self, const std::string& list,
                             std::vector<std::string>& skipped) {
  const std::string ours = (std::filesystem::path(self).parent_path() / "peer_redlock").string();
  std::vector<Peer> all{{"bare hiredis", On::quorum, {ours, "floor"}},
                        {"redlock, blocking", On::quorum, {ours, "blocking"}},
                        {"redlock, callback", On::quorum, {ours, "callback"}}};
  std::ifstream file(list);
  if (!file) throw std::runtime_error(list + " is not there: bench/peers/build.sh writes it");
  std::vector<Peer> last;
  for (std::string line; std::getline(file, line);) {
    const auto words = split(line);
    if (words[0] == "skipped") {
      skipped.push_back(line);
      continue;
    }
    Peer peer{words[0], On::quorum, {words.begin() + 2, words.end()}};
    if (words[1] == "one-node") peer.on = On::one_node;
    if (words[1] == "etcd") peer.on = On::etcd;
    (peer.on == On::quorum ? all : last).push_back(std::move(peer));
  }
  std::ranges::move(last, std::back_inserter(all));
  return all;
}

std::string first_line(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::array<char, 256> text{};
  const bool any = std::fgets(text.data(), text.size(), pipe) != nullptr;
  ::pclose(pipe);
  std::string line = any ? text.data() : "";
  while (line.ends_with('\n')) line.pop_back();
  return line;
}

std::string machine() {
  utsname names{};
  ::uname(&names);
  const std::string model = first_line("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1");
  return fmt::format("{} processors ({}), Linux {}", std::thread::hardware_concurrency(),
                     model.empty() ? names.machine : model, names.release);
}

/// One line of a document, without the addresses of nodes and objects.
std::string shortened(std::string note) {
  std::ranges::replace_if(
      note, [](char c) { return c == '\n' || c == '\t' || c == '|'; }, ' ');
  note = std::regex_replace(note, std::regex(R"((redis://)?127\.0\.0\.1:\d+)"), "a node");
  note = std::regex_replace(note, std::regex(R"(@[0-9a-f]{6,})"), "");
  constexpr std::size_t most = 150;
  return note.size() > most ? note.substr(0, most) + "…" : note;
}

void write(const std::string& path, const std::vector<Peer>& peers,
           const std::vector<std::string>& skipped, const std::string& commit, int rounds) {
  std::ofstream out(path);
  out << "machine\t" << machine() << "\ncommit\t" << commit << "\nrounds\t" << rounds << '\n';
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
  out << "date\t" << date.data() << "\nload\t" << first_line("cut -d' ' -f1 /proc/loadavg") << '\n';
  out << "server\t" << first_line("redis-server --version | sed 's/ sha=.*//'") << '\n';
  out << "server\t" << first_line("etcd --version 2>/dev/null") << '\n';
  for (const Peer& peer : peers) {
    const char* on = peer.on == On::quorum ? "quorum" : peer.on == On::etcd ? "etcd" : "one-node";
    out << "peer\t" << peer.name << '\t' << on << '\t' << peer.version << '\n';
    for (const auto& [column, text] : peer.cells) {
      out << "cell\t" << peer.name << '\t' << column << '\t' << text << '\n';
    }
    for (const std::string& note : peer.notes) {
      out << "note\t" << peer.name << '\t' << shortened(note) << '\n';
    }
  }
  for (const std::string& line : skipped) out << line << '\n';
  if (!out) throw std::runtime_error("cannot write " + path);
}

constexpr const char* usage = R"(usage: ./dev peers [--keep] [OPTIONS]
       compare_peers --programs FILE --record FILE [--commit TEXT] [OPTIONS]

Compares redlock with its peers on five Redis nodes that it starts. ./dev peers builds all and runs
this; with --keep the figures go to docs/. FILE of --programs is what bench/peers/build.sh writes.
  --scene TEXT  only scenes with it in their names; there are healthy, stopped, killed, slow,
                contended and holder
  --peer TEXT   only peers whose names contain it
  --rounds N    how often in turns, 1 to 100; default 5
  --round MS    how long each time, 100 to 60000; default 800
  --check       in front: only says whether these can be done
)";

/// What was asked for.
struct Orders {
  Lengths lengths;
  std::string programs;
  std::string record;
  std::string commit;
  std::string scene;
  std::string peer;
  bool only_check = false;
};

/// Asked for what cannot be done.
class BadOrder : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

int number(const std::string& flag, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  throw BadOrder(fmt::format("{} takes a number from {} to {}, not '{}'", flag, least, most, text));
}

constexpr std::array scene_names{"healthy", "stopped", "killed", "slow", "contended", "holder"};

bool is_wanted(const std::string& name, const std::string& part) {
  return name.find(part) != std::string::npos;
}

Orders read_orders(int argc, char** argv) {
  Orders orders;
  const auto flag = [&](const char* name, const std::string& otherwise) {
    return bench::take_flag(argc, argv, name).value_or(otherwise);
  };
  orders.lengths.rounds = number("--rounds", flag("--rounds", "5"), 1, 100);
  orders.lengths.round = milliseconds(number("--round", flag("--round", "800"), 100, 60'000));
  orders.programs = flag("--programs", "");
  orders.record = flag("--record", "");
  orders.commit = flag("--commit", "unknown");
  orders.scene = flag("--scene", "");
  orders.peer = flag("--peer", "");
  orders.only_check = argc > 1 && std::string(argv[1]) == "--check";
  const int next = orders.only_check ? 2 : 1;
  if (argc > next) throw BadOrder(fmt::format("what is '{}'? See --help", argv[next]));
  const auto wanted = [&](const char* name) { return is_wanted(name, orders.scene); };
  if (std::ranges::none_of(scene_names, wanted)) {
    throw BadOrder(fmt::format("no scene has '{}' in its name; there are {}", orders.scene,
                               fmt::join(scene_names, ", ")));
  }
  if (!orders.only_check && (orders.programs.empty() || orders.record.empty())) {
    throw BadOrder("it needs --programs FILE and --record FILE; ./dev peers gives it both");
  }
  return orders;
}

void compare(const Orders& orders, const std::string& self) {
  std::vector<std::string> skipped;
  std::vector<Peer> peers = read_peers(self, orders.programs, skipped);
  std::string all;
  for (const Peer& peer : peers) all += (all.empty() ? "" : ", ") + peer.name;
  std::erase_if(peers, [&](const Peer& peer) { return !is_wanted(peer.name, orders.peer); });
  if (peers.empty()) {
    throw BadOrder(fmt::format("no peer has '{}' in its name; there are {}", orders.peer, all));
  }
  Comparison comparison(peers, orders.lengths);
  const std::array<std::function<void()>, scene_names.size()> scenes{
      [&] { comparison.healthy(); },
      [&] { comparison.faulty(NodeFault::stopped); },
      [&] { comparison.faulty(NodeFault::killed); },
      [&] { comparison.slow(); },
      [&] { comparison.contended(); },
      [&] { comparison.holder_killed(); },
  };
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    if (!is_wanted(scene_names[i], orders.scene)) continue;
    std::cerr << "== " << scene_names[i] << std::endl;
    scenes[i]();
    // What is there so far.
    write(orders.record, peers, skipped, orders.commit, orders.lengths.rounds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  if (std::any_of(argv, argv + argc, [](const char* word) { return word == "--help"s; })) {
    std::cout << usage;
    return EXIT_SUCCESS;
  }
  try {
    const Orders orders = read_orders(argc, argv);
    if (!orders.only_check) compare(orders, argv[0]);
  } catch (const BadOrder& error) {
    std::cerr << "compare_peers: " << error.what() << '\n';
    return 64;
  } catch (const std::exception& error) {
    std::cerr << "compare_peers: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
