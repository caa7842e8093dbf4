// SPDX-License-Identifier: MIT
// redlock set: the members of the set, and its longest lease.
#include <algorithm>
#include <chrono>
#include <fmt/core.h>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/admin.hpp>
#include <redlock/clock.hpp>
#include <redlock/redlock.hpp>

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/invocation.hpp"
#include "cli/nodes.hpp"
#include "cli/output.hpp"
#include "cli/redlock/adoption_output.hpp"
#include "cli/redlock/holder.hpp"
#include "cli/redlock/subcommands.hpp"

namespace redlock::cli {
namespace {

constexpr auto* set_footer = R"help(
Each member of a set keeps in its data who the members are, and how long a lease may be (redlock
adopt writes it). One or two nodes, in --nodes or REDLOCK_NODES, are taken for seeds: every
subcommand reads the whole list and the longest lease from them.

Operators take turns: while one changes the set, the others wait, and are told who is at it. After
the ten seconds within which the turn of an operator who was killed ends, they exit with 75.)help";

constexpr auto* show_footer = R"help(
Prints the name of the set, its epoch (1 when it was adopted, and a larger number after each
change), its longest lease, and the addresses of its members, as a majority of them say. A longer
lease that is announced, and not in force, is shown beside it: finish redlock set max-lease.

show changes nothing. Exits 0 if a majority of the members say the same, 69 otherwise.

Examples:
  redlock set show
  redlock set show --nodes redis://a:7001
  redlock set show --nodes redis://a:7001 -o json | jq -r '.members | join(",")')help";

constexpr auto* replace_footer = R"help(
Gives the place of a member to another node, at another address, while locks are held:
  1. Start NEW, empty. OLD may run, or be dead.
  2. redlock set replace OLD NEW. The markers of the members name NEW from then on, OLD does not
     count any more, and programs that run move on to NEW by themselves. NEW grants nothing while
     leases may live that OLD has confirmed: the command waits for that, one longest lease.
  3. Stop OLD as soon as the command says that NEW is a member. Write NEW into the lists that
     programs are started with.
Replace one member after the other: the command ends when the next one may be replaced. Interrupted,
it is finished by the same command, and undone by redlock set replace NEW OLD.
A member that lost its data stays at its address: redlock adopt --replaced NODE.

Exits 0 if every node has its marker, 1 if one is left alone, 69 if one could not be asked, 64 if
neither OLD nor NEW is a member. It needs the rights of the user redlock-admin.

Examples:
  redlock set replace redis://c:7001 redis://d:7001 --nodes redis://a:7001
  redlock doctor --nodes redis://a:7001)help";

constexpr auto* add_footer = R"help(
Makes a node one more member, while locks are held:
  1. Start NODE, empty.
  2. redlock set add NODE. It is given the fences of the others and counts from then on. Programs
     that run go on with the new members by themselves, and lose no lease by it.
  3. Write NODE into the lists that programs are started with.
A set of an even number tolerates no more dead nodes than one of the next smaller odd number: to
tolerate one more, add two. Every member has to answer. Between two changes of the number of
members there is one longest lease: the command waits for its end, and says so. Interrupted, it is
undone by redlock set remove NODE, and finished by the same command, which then lets NODE wait for
one longest lease before it counts.

Exits 0 if every member that can be asked names the new members, 1 if one is left alone, 69 if one
could not be asked or the members would be no quorum, 64 for an address that is none. It needs the
rights of the user redlock-admin.

Examples:
  redlock set add redis://d:7001 --nodes redis://a:7001
  redlock doctor --nodes redis://a:7001)help";

constexpr auto* remove_footer = R"help(
Makes a member, which may be dead, a member none any more, while locks are held. Programs that run
go on with the others by themselves, and lose no lease by it. NODE is not told: stop it when the
command has ended, and take it out of the lists that programs are started with. Every other member
has to answer: one that is dead, too, is replaced first.
Between two changes of the number of members there is one longest lease: the command waits for its
end, and says so. Interrupted, it is finished by the same command, and undone by redlock set add
NODE. To give the place to another node: redlock set replace OLD NEW.

Exits 0 if every member that can be asked names the new members, 1 if one is left alone, 69 if one
could not be asked or the members would be no quorum, 64 if NODE is no member. It needs the rights
of the user redlock-admin.

Examples:
  redlock set remove redis://d:7001 --nodes redis://a:7001
  redlock doctor --nodes redis://a:7001)help";

constexpr auto* max_lease_footer = R"help(
Raises the longest lease that a client of the set may have, while locks are held:
  1. redlock set max-lease DURATION. Every member has to answer. They are told that longer leases
     may come, and when all know it, that they may be taken. Programs that run go on as they are,
     and lose no lease by it.
  2. Programs may ask for longer leases then, also those that run, unless a shorter --max-lease
     (REDLOCK_MAX_LEASE) was given to them.
Whatever waits until old leases are over (a member that lost its data, redlock set replace) waits
for the longest one, so make it no longer than needed: it is never made shorter. Interrupted, the
command is finished by the same one, or one with a still longer DURATION. Finish it soon: until then
no lock is granted where those who know of it, and those who do not, are both too few (one and one
of two, two and two of four, or one and one beside a dead one). If a member dies meanwhile, replace
it first.

Exits 0 if every member has it, 1 if one is left alone, 69 if one could not be asked or too few
would grant locks, 64 if DURATION is shorter than the longest lease. It needs the rights of the user
redlock-admin.

Examples:
  redlock set max-lease 3m --nodes redis://a:7001
  redlock set show --nodes redis://a:7001)help";

bool waits(const NodeAdoption& node) {
  return node.adoption == Adoption::waits;
}

using Adoptions = Result<std::vector<NodeAdoption>>;

/// Waits until no other operator changes the set, and keeps others waiting. A set that grants no
/// locks now has no such turns: no guarantee rests on them.
std::optional<Lease> take_turn(const Client& client) {
  const Admin admin(client);
  const auto marked = admin.marked_set();
  if (!marked || !*marked) return std::nullopt;  // the change says why
  const AcquireOptions options{
      .lease = std::min<std::chrono::milliseconds>(std::chrono::seconds(10), (*marked)->max_lease),
      .renewal = Renewal::always,
      .wait = std::chrono::seconds(1)};
  const auto until = BootClock::now() + *options.lease * 11 / 10 + std::chrono::seconds(1);
  for (bool is_told = false;;) {
    auto lease = client.lock(set_change_lock).acquire(options);
    if (lease) return std::move(*lease);
    const auto report = admin.inspect(set_change_lock);
    const bool is_held = report && report->verdict == Verdict::held;
    if (!is_held && lease.error().code != Errc::contended) return std::nullopt;
    const auto who = is_held ? in_words(report->holder) : "another operator";
    if (BootClock::now() >= until) {
      throw Exit(exit_contended, "no marker was changed: the set is being changed by " + who +
                                     "; give the command again when that one has ended");
    }
    if (is_held && !std::exchange(is_told, true)) {
      say("the set is being changed by " + who + "; waiting for its end");
    }
  }
}

/// A change of the set, in the turn of this operator.
class SetChange {
 public:
  SetChange(CLI::App& app, const Invocation& invocation)
      : nodes_(app, invocation), label_("redlock set " + app.get_name()) {
    add_format_option(app, format_);
  }
  SetChange(const SetChange&) = delete;
  virtual ~SetChange() = default;

  int run() {
    const auto client = nodes_.connect_to_change(label_);
    const auto turn = take_turn(client);
    const auto adoptions = make(client);
    if (!adoptions) throw failure(adoptions.error());
    return show_adoptions(*adoptions, format_);
  }

 protected:
  /// As every client does, this one goes on with the new member, and gives it its marker when it
  /// has waited for so long.
  static Adoptions wait_for(const std::string& node, const Client& client,
                            const std::function<Adoptions(const Admin&)>& again) {
    auto began = BootClock::now();
    const Admin admin(client);
    const auto marked = admin.marked_set();
    auto longest = client.options().lease;
    if (marked && *marked) {
      longest = std::max((*marked)->max_lease, (*marked)->announced_max_lease);
    }
    for (auto told = began;;) {
      if (BootClock::now() >= told) {
        say_that_it_waits(node, longest, BootClock::now() - began);
        told += std::chrono::seconds(10);
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
      // Of any lock: the report says of each node whether it grants one.
      const auto report = admin.inspect(set_change_lock);
      if (!report) return tl::make_unexpected(report.error());
      const auto its = std::ranges::find(report->nodes, node, &NodeLock::node);
      if (its == report->nodes.end()) {
        if (BootClock::now() < began + follows_within) continue;
        throw Exit(exit_no_quorum, node +
                                       " is a member, but clients with this list do not find it; "
                                       "give the same command with the list of today's members");
      }
      // Until it has its marker it is like a member that has lost its data, when it was reached.
      const bool is_late = BootClock::now() > began + longest * 5 / 4 + allowed_late;
      if (its->answered() && its->quarantine && !is_late) continue;
      auto now = again(admin);
      if (!now || std::ranges::none_of(*now, waits)) return now;
      if (!is_late) continue;
      if (its->quarantine) say(node + ": " + its->quarantine->why);
      began = told = BootClock::now();  // a member that is back showed others, or it is new again
    }
  }
  static void say_that_it_waits(const std::string& node, std::chrono::milliseconds max_lease,
                                std::chrono::nanoseconds waited) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(
        std::max<std::chrono::nanoseconds>(max_lease * 11 / 10 - waited, {}));
    say(
        fmt::format("{} is a member, and grants locks in about {} s, when leases are over that "
                    "others may have confirmed without it",
                    node, left.count()));
  }

 private:
  /// A client reads the members with each of its probes.
  static constexpr std::chrono::seconds follows_within{20};
  static constexpr std::chrono::seconds allowed_late{5};

  virtual Adoptions make(const Client& client) = 0;

  NodeOptions nodes_;
  std::string label_;
  Format format_ = Format::table;
};

/// One member more, or one less.
template <auto Change>
class ResizeSet final : public SetChange {
 public:
  ResizeSet(CLI::App& app, const Invocation& invocation) : SetChange(app, invocation) {
    app.add_option("NODE", node_, "The node")->required();
  }

 private:
  Adoptions make(const Client& client) override {
    const auto call = [&](const Admin& admin) { return (admin.*Change)(node_); };
    for (auto told = BootClock::time_point::min();;) {
      auto adoptions = call(Admin(client));
      if (!adoptions) return adoptions;
      const auto node = std::ranges::find_if(*adoptions, waits);
      if (node == adoptions->end()) return adoptions;
      const bool is_new = node->left == node->left.zero();  // the others say for how long
      if (is_new) return wait_for(std::string(node->node), client, call);
      if (BootClock::now() >= told) {
        say(node->node + ": " + node->detail);
        told = BootClock::now() + between_reports;
      }
      std::this_thread::sleep_for(std::clamp<std::chrono::milliseconds>(
          node->left, std::chrono::seconds(1), between_reports));
    }
  }

  static constexpr std::chrono::seconds between_reports{10};
  std::string node_;
};

class ReplaceMember final : public SetChange {
 public:
  ReplaceMember(CLI::App& app, const Invocation& invocation) : SetChange(app, invocation) {
    app.add_option("OLD", old_, "The member that leaves")->required();
    app.add_option("NEW", new_, "The node that takes its place")->required();
    app.add_flag("--over", over_,
                 "Do not wait: OLD is stopped for good, and has been for one longest lease");
  }

 private:
  Adoptions make(const Client& client) override {
    const auto leases = over_ ? OldLeases::are_over : OldLeases::may_live;
    auto adoptions = Admin(client).replace(old_, new_, leases);
    if (!adoptions) return adoptions;
    const auto node = std::ranges::find_if(*adoptions, waits);
    if (node == adoptions->end()) return adoptions;
    return wait_for(std::string(node->node), client, [&](const Admin& admin) {
      return admin.replace(old_, new_, OldLeases::may_live);
    });
  }

  bool over_ = false;
  std::string old_;
  std::string new_;
};

class RaiseMaxLease final : public SetChange {
 public:
  RaiseMaxLease(CLI::App& app, const Invocation& invocation) : SetChange(app, invocation) {
    app.add_option_function<std::string>(
           "DURATION",
           [this](const std::string& text) {
             max_lease_ = parse_duration("DURATION", text, Zero::refused, Forever::refused);
           },
           "The longest lease from now on (90s, 3m, 1h)")
        ->required();
  }

 private:
  Adoptions make(const Client& client) override { return Admin(client).set_max_lease(max_lease_); }

  std::chrono::milliseconds max_lease_{};
};

class ShowSet {
 public:
  ShowSet(CLI::App& app, const Invocation& invocation) : nodes_(app, invocation) {
    add_format_option(app, format_);
  }

  int run() {
    const auto whole = find_set(nodes_.client_options());
    if (!whole) throw failure(whole.error());
    const auto client = make_client(*whole);
    const auto marked = Admin(client).marked_set();
    if (!marked) throw failure(marked.error());
    if (!*marked) throw Exit(exit_no_quorum, "the members changed meanwhile; ask once more");
    const MarkedSet& set = **marked;
    if (format_ == Format::json) {
      print(to_text({{"set", set.set},
                     {"epoch", set.epoch},
                     {"max_lease_ms", set.max_lease.count()},
                     {"announced_max_lease_ms", set.announced_max_lease.count()},
                     {"members", set.members}}));
      return exit_ok;
    }
    const auto announced = set.announced_max_lease;
    print(fmt::format("set {}, epoch {}, leases of up to {}{}\n", set.set, set.epoch,
                      format_duration(set.max_lease),
                      announced == announced.zero()
                          ? ""
                          : fmt::format(" ({} announced)", format_duration(announced))));
    for (const auto& member : set.members) print(member + "\n");
    return exit_ok;
  }

 private:
  NodeOptions nodes_;
  Format format_ = Format::table;
};

}  // namespace

void add_set(CLI::App& app, Invocation& invocation) {
  auto& set = add_subcommand(app, {"set", "The members of the set, and its longest lease",
                                   "redlock set SUBCOMMAND [OPTIONS]", set_footer});
  set.require_subcommand(1);
  add_command<ShowSet>(
      set, invocation,
      {"show", "Show the members of the set", "redlock set show [OPTIONS]", show_footer});
  add_command<ResizeSet<&Admin::add>>(
      set, invocation,
      {"add", "Make a node one more member", "redlock set add NODE [OPTIONS]", add_footer});
  add_command<ResizeSet<&Admin::remove>>(
      set, invocation,
      {"remove", "Make a member one no more", "redlock set remove NODE [OPTIONS]", remove_footer});
  add_command<ReplaceMember>(set, invocation,
                             {"replace", "Give a member's place to another node",
                              "redlock set replace OLD NEW [OPTIONS]", replace_footer});
  add_command<RaiseMaxLease>(set, invocation,
                             {"max-lease", "Raise the longest lease of the set",
                              "redlock set max-lease DURATION [OPTIONS]", max_lease_footer});
}

}  // namespace redlock::cli
