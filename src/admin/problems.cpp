// SPDX-License-Identifier: MIT
#include "admin/problems.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include "admin/marker.hpp"
#include "client/set_name.hpp"
#include "engine/quorum.hpp"
#include "engine/rules.hpp"
#include "wire/error_reply.hpp"
#include "wire/info_text.hpp"
#include "wire/objection_text.hpp"

namespace redlock::admin {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Not in nanoseconds: the clocks of damaged nodes can be further apart than those reach.
std::string in_ms(microseconds duration) {
  return std::to_string(std::chrono::round<milliseconds>(duration).count()) + " ms";
}

std::string in_s(std::chrono::seconds duration) {
  return std::to_string(duration.count()) + " s";
}

/// "2026-03-01 08:31 UTC".
std::string in_utc(std::chrono::sys_seconds when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "an unknown day";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts)};
}

std::string in_days(std::chrono::seconds left) {
  using std::chrono::days, std::chrono::hours, std::chrono::minutes, std::chrono::floor;
  if (left >= days(2)) return std::to_string(floor<days>(left).count()) + " days";
  if (left >= hours(2)) return std::to_string(floor<hours>(left).count()) + " hours";
  return std::to_string(floor<minutes>(left).count()) + " minutes";
}

/// " ends on DAY, in 6 days": empty if the end is far. No one renews a one-day certificate more
/// than a day before its end.
std::string end_of(const CertificateHealth& certificate, std::chrono::sys_seconds now) {
  const std::chrono::seconds left = certificate.ends - now;
  if (left <= left.zero()) return " ended on " + in_utc(certificate.ends);
  const std::chrono::seconds life = certificate.ends - certificate.begins;
  if (left > std::min<std::chrono::seconds>(std::chrono::days(14), life / 3)) return {};
  return " ends on " + in_utc(certificate.ends) + ", in " + in_days(left);
}

/// It has no marker, and no client will write one.
bool waits_for_operator(const NodeHealth& node) {
  return !node.marker && node.quarantine && node.quarantine->votes_in == std::chrono::seconds(0);
}

/// Its place was given to another node.
bool is_removed(const Marker& marker, const Expectation& expected) {
  const auto& its = expected.members;
  return marker.set == its.set && as_written(marker).configuration().epoch < its.epoch &&
         !its.has(marker.id);
}

/// It does not know of the longest lease of the others.
bool is_behind(const Marker& marker, const Expectation& expected) {
  const auto its = as_written(marker).configuration();
  return expected.members.follows(its) && expected.members.has(marker.id) &&
         engine::rules::is_behind(its.longest_lease(), expected.members.longest_lease());
}

bool recent_enough(const std::string& version) {
  return wire::ServerVersion::parse(version).supported();
}

/// Collects problems; its members are the rules for one node. A problem that only keeps the node
/// from voting is a warning: the other nodes carry the set, and a rule of the set checks whether
/// they are enough.
class NodeRules {
 public:
  NodeRules(const NodeHealth& node, const Expectation& expected)
      : node_(node), expected_(expected) {}

  std::vector<Problem> run() {
    if (!node_.answered()) {
      unreachable();
      return std::move(problems_);
    }
    kind_of_server();
    marker();
    quarantine();
    persistence();
    eviction();
    unread();
    doors();
    clock();
    refusal();
    order_of_waiters();
    rights();
    fences();
    certificate();
    return std::move(problems_);
  }

 private:
  void error(std::string what) { problems_.push_back({Severity::error, std::move(what)}); }
  void hint(std::string what) { problems_.push_back({Severity::hint, std::move(what)}); }
  void warn(std::string what) { problems_.push_back({Severity::warning, std::move(what)}); }

  void unreachable() {
    const auto& why = node_.trouble.detail;
    switch (node_.trouble.cause) {
      case Cause::authentication:
        return warn("it refuses the user or password (" + why + ")");
      case Cause::permission:
        if (why.starts_with("DENIED")) {
          return warn("it accepts no client from another machine (" + why + ")");
        }
        if (wire::is_of_renamed(why)) {
          return warn("it lacks a command with which every client begins (" + why + ")");
        }
        return warn("the user lacks a right that is needed (" + why + ")" +
                    (why.find("; permit ") == std::string::npos
                         ? ""
                         : "; give it the rights that cluster/users.acl lists"));
      case Cause::moved:
        return in_a_cluster(" (" + why + ")");
      case Cause::incompatible:
        return warn("it is not fit to be a lock node: " + why);
      case Cause::loading:
        return warn("it is still reading its data; wait until it has, and look again");
      case Cause::busy:
        return warn("it is stuck in a script (" + why + "); then look again");
      case Cause::read_only:
      case Cause::master_down:
        return warn("it does not answer as a master does (" + why + ")");
      case Cause::tls:
        return warn("its TLS does not suit this client: " + why);
      case Cause::protocol_error:
        return warn("it does not answer as Redis does (" + why +
                    "); correct its address, or find what publishes to redlock:wake:* there "
                    "(MONITOR) if it sends too much");
      case Cause::server_error:
        return refuses_the_beginning(why);
      default:
        return warn("it cannot be examined (" +
                    (why.empty() ? std::string(to_string(node_.trouble.cause)) : why) +
                    "); start it, or correct its address, and look again");
    }
  }

  void refuses_the_beginning(const std::string& why) {
    if (why.starts_with("WRONGTYPE")) {
      return warn("a key that is no marker stands in its place, redlock:node (" + why +
                  "); then run `redlock adopt --replaced NODE`");
    }
    warn("it refuses a command with which every client begins (" + why +
         "); fix that, and look again");
  }

  void refusal() {
    const auto& why = node_.refusal.detail;
    switch (node_.refusal.cause) {
      case Cause::none:
        return;
      case Cause::permission:
        if (wire::is_of_renamed(why)) {
          return warn("it lacks a command that a lock needs (" + why + ")");
        }
        return warn("the user may not take, hold and give back a lock (" +
                    (node_.missing_rights.empty() ? why : why.substr(0, why.rfind("; permit "))) +
                    ")" + what_to_permit());
      case Cause::too_few_replicas:
        return warn("it waits for replicas that it does not have and grants no lock (" + why + ")");
      case Cause::out_of_memory:
        return warn("its memory is full and it grants no lock (" + why + ")");
      case Cause::write_error:
        if (node_.append_error) return;
        return warn("it cannot write to its disk and grants no lock (" + why + ")");
      default:
        return warn("it did not take, hold and give back a lock (" +
                    (why.empty() ? std::string(to_string(node_.refusal.cause)) : why) +
                    "); fix that, and look again");
    }
  }

  void order_of_waiters() {
    if (node_.serves_in_order.value_or(true)) return;
    hint(
        "the user may not put waiting calls into a line, or receive turns, so these calls ask it "
        "by their own timers" +
        what_to_permit());
  }

  void certificate() {
    const auto end = node_.certificate ? end_of(*node_.certificate, expected_.now) : "";
    if (end.empty()) return;
    const bool own = !node_.certificate->of_authority;
    warn((own ? "its certificate" : "a certificate of the authority that vouches for its own") +
         end + ", and then no client connects to it any more; " +
         (own ? "give it a new one" : "replace the authority") + " (docs/tls.md says how)");
  }

  /// Missing rights that no other rule has named.
  void rights() {
    if (node_.missing_rights.empty() || named_rights_) return;
    hint("the user lacks rights of cluster/users.acl, which says what each is for" +
         what_to_permit());
  }

  void fences() {
    const auto& damaged = node_.damaged_fences;
    if (damaged.empty()) return;
    const auto& first = damaged.front();
    const bool mendable = std::ranges::any_of(
        damaged, [](const DamagedFence& fence) { return fence.mended.has_value(); });
    warn("its fence counter redlock:fence:" + std::to_string(first.stripe) + " is damaged (" +
         (first.value.empty() ? "no number" : first.value) +
         (damaged.size() > 1 ? ", and " + std::to_string(damaged.size() - 1) + " more are" : "") +
         "), so it does not vote on locks that use it; " +
         (mendable ? "run `redlock doctor --mend`"
                   : "run `redlock doctor --mend` when more of the other nodes answer"));
  }

  [[nodiscard]] std::string what_to_permit() {
    named_rights_ = true;
    std::string all;
    for (const auto& right : node_.missing_rights) all += " " + right;
    return all.empty() ? "; give it the rights that cluster/users.acl lists"
                       : "; permit it (ACL SETUSER)" + all;
  }

  void kind_of_server() {
    if (node_.version && !recent_enough(*node_.version)) {
      warn("Redis " + *node_.version + " is too old; run 6.2 or newer");
    }
    if (node_.role && *node_.role != "master") {
      warn("it is a replica (role " + *node_.role +
           "), which follows another node instead of voting for itself; use independent masters");
    }
    if (node_.promoted && !node_.vouched) promoted();
    if (node_.cluster) in_a_cluster("");
  }

  void promoted() {
    const std::string what =
        "it was a replica and has been promoted, so it may lack the newest locks of its former "
        "master";
    if (!node_.quarantine) {
      return error(what +
                   "; replace it with a node of its own, or restart it once all leases are over");
    }
    warn(what + "; " + after_quarantine() +
         "; run `redlock adopt` if all earlier leases are over (with --replaced NODE if it has "
         "no marker), and leave replicas out");
  }

  [[nodiscard]] std::string after_quarantine() const {
    if (waits_for_operator(node_)) return "it votes for no client";
    return "for a client that starts now, it votes in " + in_s(node_.quarantine->votes_in);
  }

  /// A quarantine that the other rules do not explain.
  void quarantine() {
    const bool restarted =
        node_.quarantine && node_.marker && !node_.marker->set.empty() && !node_.promoted;
    if (restarted) warn(node_.quarantine->why);
  }

  void in_a_cluster(const std::string& evidence) {
    const std::string what =
        "it belongs to a Redis Cluster" + evidence + ", which moves keys between nodes";
    // The evidence says what to do.
    warn(evidence.empty() ? what + "; set cluster-enabled no, or use another node" : what);
  }

  void marker() {
    if (!node_.marker) {
      if (role_is_master()) no_marker();
      return;
    }
    if (is_behind(*node_.marker, expected_)) {
      return warn(
          "its marker says a shorter longest lease than most: raising it was interrupted, or the "
          "node came back with older data; give the same `redlock set max-lease` once more, or, if "
          "it names other members as well, run `redlock adopt`");
    }
    const auto how = disagreement(*node_.marker, expected_.set);
    if (!how.empty()) return warn(how);
    const auto its = as_written(*node_.marker).configuration();
    if (node_.marker->set.empty()) {
      return warn(
          expected_.set_name
              ? "its adoption was not finished; run `redlock adopt`, with --replaced NODE if "
                "that leaves it alone"
              : "its adoption was not finished; run `redlock adopt` with the same list once "
                "more");
    }
    if (!expected_.set_open && node_.marker->set != expected_.set_name) {
      warn(client::another_set(node_.marker->set, expected_.set_name));
    } else if (is_removed(*node_.marker, expected_)) {
      warn(wire::sentence_of(engine::NoMember{true, expected_.members.addresses()}));
    } else if (its.members == expected_.members.members && !its.has_leases_of(expected_.members)) {
      warn("its marker says max_lease_ms " + node_.marker->max_lease_ms +
           ", and most say another: raising it was interrupted; finish it with `redlock set "
           "max-lease` and the longest of these, or a longer one");
    } else if (its.members.size() == expected_.members.members.size() &&
               expected_.members.follows(its) && its.members != expected_.members.members) {
      warn("its marker names former members: it was not told of a change; run `redlock adopt`");
    } else if (!expected_.members.members.empty() && its != expected_.members) {
      warn(
          "its marker names other members than most: a change of the members was interrupted, so "
          "finish it with the same `redlock set` command (if another one was made since, with that "
          "one; if it is refused, see docs/operations.md, \"More nodes, or fewer\"); or the list "
          "is old "
          "(`redlock set show`)");
    }
  }

  void no_marker() {
    const std::string what =
        "it has no marker: it is new, or has lost its data and with it perhaps a lock that is "
        "held; run `redlock adopt` if the set is new, or with --replaced NODE when the longest "
        "lease is over";
    if (!node_.quarantine) return error(what);
    if (waits_for_operator(node_)) return warn(node_.quarantine->why);
    warn(what + " (" + after_quarantine() + ")");
  }

  [[nodiscard]] bool role_is_master() const { return !node_.role || *node_.role == "master"; }

  void persistence() {
    if (node_.append_error) {
      warn("it cannot write its append-only file (" + *node_.append_error +
           ") and refuses locks; make room on its disk or repair it");
    }
    if (!node_.append_only) return;
    if (!*node_.append_only) {
      error(
          "appendonly is no: after a restart it has forgotten which locks are held and grants "
          "them again; set appendonly yes and appendfsync always");
    } else if (node_.append_fsync && *node_.append_fsync != "always") {
      warn("appendfsync is " + *node_.append_fsync +
           ": after a power cut it may have forgotten the newest locks; set appendfsync always");
    }
  }

  void eviction() {
    if (!node_.eviction || *node_.eviction == "noeviction") return;
    const bool limited = node_.max_memory && *node_.max_memory > 0;
    std::string what = "maxmemory-policy is " + *node_.eviction +
                       ": when memory is full it evicts locks that are held";
    if (limited) return error(what + "; set it to noeviction");
    warn(what + " (maxmemory sets no limit yet); set it to noeviction");
  }

  void unread() {
    std::string what;
    const auto note = [&what](bool missing, const char* name) {
      if (missing) what += (what.empty() ? "" : ", ") + std::string(name);
    };
    note(!node_.role, "role");
    note(!node_.run_id, "run id");
    note(!node_.append_only, "appendonly");
    note(node_.append_only.value_or(false) && !node_.append_fsync, "appendfsync");
    note(!node_.eviction, "maxmemory-policy");
    if (what.empty()) return;
    error("the user may not read " + what +
          ", so it is not known whether the node is safe; allow the user INFO and CONFIG GET");
  }

  void doors() {
    if (node_.open) {
      error(
          "its default user is on without a password, and protected-mode keeps no machine out: any "
          "client that "
          "reaches it may delete locks that are held; give programs the users of "
          "cluster/users.acl, and turn the default user off (ACL SETUSER default off)");
    }
    std::string names;
    for (const auto& name : node_.readable_passwords) names += (names.empty() ? "" : ", ") + name;
    if (names.empty()) return;
    error("the user may read the password in " + names +
          " by CONFIG GET, and with it become a user with more rights; leave it empty: a lock node "
          "has `user default off` in place of a requirepass, and no master");
  }

  void clock() {
    if (node_.clock_noted > milliseconds::zero()) {
      warn("a client has seen its clock move, and clients that start now do not count it for " +
           in_s(std::chrono::ceil<std::chrono::seconds>(node_.clock_noted)) +
           "; find out what moved it, and run a time service (chrony, ntpd)");
    }
    if (node_.clock_offset) return;
    warn("its clock cannot be read, so a jump goes unnoticed; allow the user TIME");
  }

  const NodeHealth& node_;
  const Expectation& expected_;
  bool named_rights_ = false;
  std::vector<Problem> problems_;
};

void check_size(std::vector<Problem>& problems, std::size_t nodes) {
  if (nodes < 3) {
    problems.push_back({Severity::hint, "with " + std::to_string(nodes) + " node" +
                                            (nodes == 1 ? "" : "s") +
                                            " no node may fail; three tolerate one, five two"});
  } else if (nodes % 2 == 0) {
    problems.push_back({Severity::hint, std::to_string(nodes) +
                                            " nodes tolerate no more failures than " +
                                            std::to_string(nodes - 1) + "; use an odd number"});
  }
}

bool can_vote(const NodeHealth& node, const Expectation& expected) {
  if (!node.answered() || node.refusal.cause != Cause::none) return false;
  if (node.role.value_or("master") != "master" || node.cluster) return false;
  if (node.version && !recent_enough(*node.version)) return false;
  if (!node.marker) return !waits_for_operator(node);
  if (!disagreement(*node.marker, expected.set).empty() || node.marker->set.empty()) return false;
  if (is_removed(*node.marker, expected) || is_behind(*node.marker, expected)) return false;
  return expected.set_open || node.marker->set == expected.set_name;
}

/// The quorum-th node to vote decides when the first lock can be taken.
void check_quarantines(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes,
                       const Expectation& expected) {
  std::vector<std::chrono::seconds> waits;
  for (const auto& node : nodes) {
    if (!can_vote(node, expected)) continue;
    waits.push_back(node.quarantine ? node.quarantine->votes_in : std::chrono::seconds::zero());
  }
  std::ranges::sort(waits);
  const auto wait = waits[nodes.size() / 2];
  if (wait.count() == 0) return;
  problems.push_back({Severity::warning,
                      "fewer than a quorum of nodes vote at once: a client that starts now takes "
                      "its first lock in " +
                          in_s(wait) +
                          "; run `redlock adopt` if the set is new, and see docs/operations.md if "
                          "members lost their data"});
}

/// Tokens survive the loss of data on a minority.
void check_memory(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes) {
  const auto unmarked = std::count_if(nodes.begin(), nodes.end(), [](const NodeHealth& node) {
    return node.answered() && node.role.value_or("master") == "master" && !node.marker;
  });
  const auto quorum = engine::quorum_of(static_cast<std::uint32_t>(nodes.size()));
  if (nodes.size() - static_cast<std::size_t>(unmarked) >= quorum) return;
  problems.push_back(
      {Severity::error,
       std::to_string(unmarked) + " of " + std::to_string(nodes.size()) +
           " nodes have no marker: the set is new, or a majority has lost its "
           "data, and tokens may start again; run `redlock adopt` if it is new, and see "
           "docs/operations.md if it is not"});
}

void check_quorum(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes,
                  const Expectation& expected) {
  const auto voters = std::count_if(nodes.begin(), nodes.end(),
                                    [&](const auto& node) { return can_vote(node, expected); });
  const auto quorum = expected.quorum;
  if (voters >= static_cast<std::ptrdiff_t>(quorum)) {
    return check_quarantines(problems, nodes, expected);
  }
  problems.push_back({Severity::error, "only " + std::to_string(voters) + " of " +
                                           std::to_string(nodes.size()) + " nodes can vote and " +
                                           std::to_string(quorum) + " must: no lock can be taken"});
}

/// Nodes that can vote, but not on the locks of one counter.
void check_fences(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes,
                  const Expectation& expected) {
  std::map<std::uint32_t, std::uint32_t> damaged;  // how many voters, by stripe
  std::uint32_t voters = 0;
  for (const auto& node : nodes) {
    if (!can_vote(node, expected)) continue;
    ++voters;
    for (const auto& fence : node.damaged_fences) ++damaged[fence.stripe];
  }
  const auto quorum = expected.quorum;
  const auto lost = std::ranges::find_if(
      damaged, [&](const auto& of_stripe) { return voters - of_stripe.second < quorum; });
  if (voters < quorum || lost == damaged.end()) return;
  problems.push_back(
      {Severity::error,
       "only " + std::to_string(voters - lost->second) + " of " + std::to_string(nodes.size()) +
           " nodes can vote on locks that use the fence counter redlock:fence:" +
           std::to_string(lost->first) + " and " + std::to_string(quorum) +
           " must: none of these locks can be taken; start the nodes that are down, and run "
           "`redlock doctor --mend`"});
}

void check_identity(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes) {
  for (const auto& node : nodes) {
    if (node.same_as.empty()) continue;
    problems.push_back({Severity::error, node.same_as + " and " + node.node +
                                             " are the same server (run id " +
                                             node.run_id.value_or("unknown") +
                                             "), which would vote twice; name every node once"});
  }
}

void check_markers(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes,
                   const Expectation& expected) {
  if (expected.set_name && expected.members.members.empty()) {
    problems.push_back({Severity::warning,
                        "no quorum of the markers agrees on the members of the set: a change "
                        "was interrupted; finish it with the same `redlock set` command"});
  }
  if (const auto announced = expected.members.announced; announced > announced.zero()) {
    problems.push_back(
        {Severity::warning, "leases of up to " + in_ms(announced) +
                                " are announced and not in force: raising the longest lease was "
                                "interrupted; finish it with `redlock set max-lease`"});
  }
  for (const auto& member : expected.members.members) {
    const bool is_listed = std::ranges::any_of(nodes, [&](const NodeHealth& node) {
      const bool is_it =
          node.node == member.address || (node.marker && node.marker->id == member.id);
      return is_it && std::ranges::count(expected.listed, node.node) != 0;
    });
    if (is_listed || expected.members.members.size() <= expected.listed.size()) continue;
    problems.push_back({Severity::warning, member.address + " is a member of the set, and not in "
                                                            "the list of nodes; write it there"});
  }
  std::map<std::string, std::string> seen;
  const Marker* first = nullptr;
  for (const auto& node : nodes) {
    if (!node.marker) continue;
    const auto& marker = *node.marker;
    if (const auto [at, is_new] = seen.emplace(marker.id, node.node); !is_new) {
      problems.push_back({Severity::warning, at->second + " and " + node.node +
                                                 " have the same marker: one has the data of the "
                                                 "other; do not copy data between lock nodes"});
    }
    if (first == nullptr) first = &marker;
    const bool same_terms =
        marker.nodes == first->nodes && marker.max_lease_ms == first->max_lease_ms;
    const bool same_set = !marker.set.empty() && marker.set == first->set;  // whose terms change
    if (marker.layout == first->layout && (same_terms || same_set)) continue;
    problems.push_back({Severity::error,
                        "the markers disagree on the set (layout, nodes or max_lease_ms): these "
                        "nodes belong to different sets; check the list of nodes"});
    return;
  }
}

void check_clocks(std::vector<Problem>& problems, const std::vector<NodeHealth>& nodes,
                  const Expectation& expected) {
  const NodeHealth* slow = nullptr;
  const NodeHealth* fast = nullptr;
  for (const auto& node : nodes) {
    if (!node.clock_offset) continue;
    if (slow == nullptr || *node.clock_offset < *slow->clock_offset) slow = &node;
    if (fast == nullptr || *node.clock_offset > *fast->clock_offset) fast = &node;
  }
  if (slow == nullptr) return;
  const auto apart = *fast->clock_offset - *slow->clock_offset;
  const auto trips =
      fast->round_trip.value_or(microseconds(0)) + slow->round_trip.value_or(microseconds(0));
  const auto unsure = std::chrono::duration_cast<microseconds>(trips / 2);
  const auto allowance = std::chrono::duration_cast<microseconds>(expected.drift_allowance);
  if (apart - unsure <= allowance) return;
  problems.push_back({Severity::warning,
                      "the clocks of " + slow->node + " and " + fast->node + " are " +
                          in_ms(apart) + " apart, more than the drift allowance of " +
                          in_ms(allowance) + "; run a time service (chrony, ntpd) on every node"});
}

}  // namespace

std::vector<Problem> problems_of_node(const NodeHealth& node, const Expectation& expected) {
  return NodeRules(node, expected).run();
}

std::vector<Problem> problems_of_client(const ClientFiles& files, std::chrono::sys_seconds now) {
  std::vector<Problem> problems;
  const auto warn = [&problems](std::string what) {
    problems.push_back({Severity::warning, std::move(what)});
  };
  if (!files.not_in_use.empty()) warn(files.not_in_use);
  if (!files.exposed_key.empty()) {
    warn("tls.key: " + files.exposed_key + " can be read by every user of this machine; chmod 600");
  }
  if (const auto end = files.certificate ? end_of(*files.certificate, now) : ""; !end.empty()) {
    warn((files.certificate->of_authority ? "tls.certificate: a certificate behind the client's own"
                                          : "tls.certificate: the certificate of this client") +
         end + ", and then nodes refuse this client; put a new one in its place, with its key");
  }
  return problems;
}

std::vector<Problem> problems_of_set(const std::vector<NodeHealth>& nodes,
                                     const Expectation& expected) {
  std::vector<Problem> problems;
  check_size(problems, nodes.size());
  check_quorum(problems, nodes, expected);
  check_fences(problems, nodes, expected);
  check_memory(problems, nodes);
  check_identity(problems, nodes);
  check_markers(problems, nodes, expected);
  check_clocks(problems, nodes, expected);
  return problems;
}

}  // namespace redlock::admin
