// SPDX-License-Identifier: MIT
// Everything that must never happen, checked while it could. The world reports what it does; a
// broken promise is thrown as a Violation. Nothing here looks into the engine.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "simulation/belief.hpp"
#include "simulation/documented.hpp"
#include "simulation/node_server.hpp"
#include "support/documented_keys.hpp"

namespace redlock::simulation {

inline std::int64_t us(Duration duration) {
  return duration.count() / 1'000;
}

/// One life of one client; a client that comes back after a crash is another one.
using ClientId = std::uint32_t;

struct Violation {
  std::string rule;  ///< the promise that was broken, one of a fixed set
  std::string what;
};

/// Which promises are judged; the others cannot be kept in this world.
struct Judged {
  bool tokens = true;
  bool exclusion = true;
  bool possession = true;
  bool clocks = true;
  bool rules = true;         ///< not only what is promised but also how it is kept
  bool clones = false;       ///< two processes may draw the same owner
  bool first_counts = true;  ///< otherwise no quorum has the first node
  bool all_fit = false;      ///< every node is fit for every client
};

/// How calls that wait in order are judged; a member that is zero is not judged.
struct JudgedWaiting {
  bool order = false;         ///< who began later is not before one whom a quorum knows
  int overtaken_at_most = 0;  ///< a call, all the same, by how many that began later
  Duration delays_differ{};   ///< for "later": the ways of two messages, and the nodes' clocks
  std::int64_t rates_differ_ppm = 0;  ///< the clocks by which two calls say how long they wait
  Duration free_at_most{};            ///< a lock for which somebody waits who reaches a quorum
  Duration grant_takes{};             ///< of its validity, when the call has its turn
  double drift_factor = 0;            ///< the largest of a client
  Duration passed_on_within{};        ///< one that its holder gives back
  Duration pauses_at_most{};          ///< a client whose first call failed for a reason of its own
  Duration leaves_within{};           ///< a client that waits no more, the lines that it can reach
  double asks_per_grant = 0;          ///< of each node, beside the first of each call
  bool lines_end = false;             ///< nobody is in a line long after everybody has left
};

class Invariants {
 public:
  /// The nodes must outlive this object.
  Invariants(Judged judged, const std::vector<SimNode>& nodes, std::uint32_t members,
             std::int64_t drift_ppm, Duration max_lease)
      : judged_(judged),
        nodes_(nodes),
        members_(members),
        drift_ppm_(drift_ppm),
        max_lease_(max_lease) {
    key_terms_.max_lease = std::chrono::ceil<std::chrono::milliseconds>(max_lease);
  }
  /// If some clients have others.
  void set_key_terms(const testing::KeyTerms& terms) { key_terms_ = terms; }

  /// A client comes to life; the clock must outlive this object.
  ClientId client_starts(const DriftingClock& clock);
  void client_crashes(ClientId client);
  /// What was expected during the pause may take that much longer.
  void client_resumes(ClientId client, Instant world, Duration node_timeout);

  // What users do.
  /// Whom an operator takes a lock away from.
  struct Forced {
    std::string name;
    engine::OwnerId owner;
  };
  /// Several calls of one may take a name at once.
  struct TakingOwner {
    std::uint64_t number = 0;
    Duration entry_takes{};  ///< at most
  };
  struct Request {
    engine::RequestId id = 0;
    engine::Name name;  ///< an object of its own for each request, by which messages are known
    Instant expected = engine::never;  ///< it ends by then, unless a pause comes between
    Instant due = engine::never;       ///< it ends by then, whatever happens
    Duration takes{};                  ///< at most, if all of it is still to be done after a pause
    Duration min_validity{};
    bool acquires = false;
    std::chrono::milliseconds lease{};
    std::optional<Forced> forces = std::nullopt;
    engine::GrantId enters = 0;    ///< the lease that is to be held once more
    engine::GrantId extends = 0;   ///< the one that is to be lengthened
    engine::GrantId releases = 0;  ///< the one that is given back
    bool takes_up = false;         ///< a lease from elsewhere, by its right token
    /// The watchdog renews a lease for so long, with the last answer; zero: not at all.
    Duration renewed_for = Duration::max();
    std::optional<TakingOwner> owner = std::nullopt;  ///< who takes the name
    bool in_order = false;
    Instant waits_until{};  ///< by its client's clock, if it waits
    Instant began{};        ///< by the world's time
  };
  void requested(ClientId client, const Request& request);
  void must_end_now(ClientId client, engine::RequestId request, Instant now);
  void released(Instant world, ClientId client, engine::GrantId grant,
                engine::RequestId request = 0);
  /// One level of a lease is given back.
  void left(ClientId client, engine::GrantId grant);
  /// The same by an owner, of what it took; `released_grant`: what its client says is released.
  void left_by_owner(Instant world, ClientId client, const std::string& name, std::uint64_t owner,
                     engine::GrantId released_grant);
  void detached(ClientId client, engine::GrantId grant);
  /// Its holder is told that it is lost before the client has noticed.
  void given_up(ClientId client, engine::GrantId grant);
  /// Further than the clocks of any world.
  static constexpr engine::Token damaged_fence = documented::highest_floor - 1;
  /// The node's fences are damaged, or that far, from now on.
  void fence_damaged(std::uint32_t node) { damaged_.insert(node); }

  /// A quorum is told who the members are.
  void members_made(Instant world, std::uint64_t epoch) { members_made_[epoch] = world; }

  // What passes between clients and nodes.
  void executed(Instant world, std::uint32_t node, const ScriptRun& run);
  void answered(Instant world, ClientId client, std::uint32_t node, const engine::Tag& tag,
                const engine::Reply& reply);

  struct Reading {
    Instant at{};            ///< by the client's clock, when it learned of it
    Duration ahead{};        ///< the node's clock of the client's, in truth
    Duration uncertainty{};  ///< as the client knows
    Instant world{};         ///< when it was made, in truth
    Duration astray{};       ///< the node's clock of the world's time then
  };
  /// A client is about to be told whether the node has its marker.
  void marker_shown(Instant world, ClientId client, std::uint32_t node) {
    Client& its = clients_[client];
    const Instant before = std::exchange(its.marker_seen[node], world);
    const auto is_news = [&](Instant forgot) { return before < forgot && forgot <= world; };
    if (std::ranges::any_of(nodes_[node].forgot, is_news)) its.learned[node] = world;
  }
  /// A note on the node says for how long its clock is not to be trusted.
  void clock_note_shown(Instant now, ClientId client, std::uint32_t node, Duration lasts) {
    clients_[client].clocks[node].noted_until = now + std::min(lasts, max_lease_);
  }
  /// A client is about to be told what a node's clock shows.
  void clock_read(ClientId client, std::uint32_t node, const Reading& reading);

  /// The client is about to do this: to send what is for the nodes, and then to tell its user.
  void sent(Instant world, ClientId client, const engine::Send& send);
  void told(Instant world, ClientId client, const engine::Outputs& outputs);
  void told(Instant world, ClientId client, const engine::ClientOutput& output);
  /// The client has done what its outputs asked for.
  void turn_ends(Instant world, ClientId client);
  /// The last moment before a lease's validity ends: a quorum must still have it.
  void validity_ends(Instant world, ClientId client, engine::GrantId grant, Instant valid_until);

  /// The resource that the locks of a name protect: reads and writes carry the token, and a smaller
  /// one than was seen is turned away. Read, then write one more; no update may be lost.
  [[nodiscard]] std::optional<std::uint64_t> read_register(const std::string& name,
                                                           engine::Token token);
  void write_register(const std::string& name, engine::Token token, std::uint64_t value);

  // Calls that wait (invariants_waiting.cpp).
  /// Since when nothing was wrong between a client and a node; none if something is.
  using WellSince = std::optional<Instant>;
  using LooksWell = std::function<WellSince(ClientId, std::uint32_t)>;
  void judge_waiting(const JudgedWaiting& judged, LooksWell well_since) {
    waiting_ = judged;
    well_since_ = std::move(well_since);
  }
  /// A free lock is granted to a waiting call, and a client that left is in no line.
  void look_at_lines(Instant world);
  /// Long after the last client left.
  void must_be_no_lines(Instant world, const std::string& name) const;
  /// All keys are those of the documents, end as they say, and hold no more
  /// (support/documented_keys.hpp).
  void keys_must_be_documented(Instant world) const;

  /// A node that has long been well and within reach of a client must have nothing of its attempts
  /// that are over.
  void must_be_tidy(Instant world, std::uint32_t node, Duration grace) const;
  /// Every request has ended.
  void must_be_done() const;

  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t attempts = 0;
    std::uint64_t granted = 0;
    std::uint64_t lost = 0;
    std::uint64_t stale_writes = 0;
    Duration longest_free{};  ///< a lock for which somebody waited

    void add(const Counts& other) {
      requests += other.requests;
      attempts += other.attempts;
      granted += other.granted;
      lost += other.lost;
      stale_writes += other.stale_writes;
      longest_free = std::max(longest_free, other.longest_free);
    }
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  /// What a node has of a lock; none: it is free.
  using HeldLock = std::optional<NodeData::Lock>;
  enum class State : std::uint8_t { attempting, over, live, lost, detached };
  /// An owner and one name.
  struct OwnerState {
    std::uint32_t calls = 0;               // that have not ended
    engine::GrantId grant = 0;             // what it holds
    Instant entry_until = Instant::min();  // an entry that nobody waits for any more may last
  };
  struct Grant {
    ClientId client = 0;
    engine::GrantId id = 0;
    engine::Name name;
    engine::OwnerId owner;
    std::chrono::milliseconds lease{};     // the longest that was asked for
    std::chrono::milliseconds acquired{};  // the first that was
    Instant started{};                     // by the client's clock
    engine::Token returned_before = 0;
    engine::Token token = 0;
    State state = State::attempting;
    Instant valid_until = Instant::min();
    Instant loss_told_by = engine::never;
    /// The latest that answers of this turn made of it: one that came behind may have undone it.
    Instant confirmed_in_turn = Instant::min();
    /// The same without what held before the first of them.
    Instant valid_after_answer = Instant::min();
    Instant over_at{};
    /// What may have been confirmed before it was forced out reaches no further.
    Instant forced_bound = engine::never;
    bool taken_up = false;  // by attach, not acquired
    bool in_line = false;   // its call waits in order
    bool settles = false;   // a quorum granted different tokens
    bool given_up = false;
    bool shortened = false;        // by a node that took its vote back
    bool held = false;             // nodes were asked for more of it
    std::uint64_t forced_out = 0;  // the first answer that says so while it lives
    std::uint32_t count = 1;       // levels that the owner was told of and did not leave
    std::uint32_t entering = 0;    // requests for another
    std::uint32_t extending = 0;   // requests for a longer validity
    Instant renewed_until = engine::never;
    Instant granted{};                                // by the world's time
    const OwnerState* by = nullptr;                   // who took it, if calls of an owner share it
    std::vector<std::uint32_t> counts;                // the last that each node was sent
    std::vector<std::chrono::milliseconds> held_for;  // the longest hold that each node was sent
    Belief belief;
  };
  /// What a client was told of a node's clock.
  struct Move {
    Instant from{};
    Instant at{};
    Duration by{};         // between the last two readings, in truth
    bool certain = false;  // they show it
  };
  struct Clock {
    std::vector<Reading> readings;  // of the last two max_lease
    std::vector<Move> moves;        // of the last max_lease
    Instant blamed_until = Instant::min();
    Duration blamed_for{};
    Instant noted_until = Instant::min();  // by a client
    std::uint64_t read = 0;  // the place of the latest reading among all that was received
    bool must_be_noticed = false;
  };
  struct Client {
    const DriftingClock* clock = nullptr;
    std::vector<Clock> clocks;
    std::vector<Instant> marker_seen;  // of each node, when it was last seen to be there or gone
    std::vector<Instant> learned;      // of each node, when it was last seen that it forgot
    bool alive = true;
    Instant resumed{};
    std::uint64_t next_heard = 0;  // the place of the first answer of this turn
    // Grants and nodes of this turn's acquires, unless they turned out not to be sent: what was
    // decided before a connection showed the note.
    std::set<std::pair<engine::GrantId, std::uint32_t>> asked_though_noted;
    std::map<engine::RequestId, Request> requests;
    std::unordered_map<const std::string*, engine::RequestId> by_name;
    std::unordered_map<engine::RequestId, Grant*> attempts;
    // Attempts of a call that began another one in the same turn, in which both may be decided:
    // what is sent is told before what was decided.
    std::unordered_map<engine::RequestId, std::deque<const Grant*>> replaced;
    std::unordered_map<engine::GrantId, Grant> grants;
    std::vector<Grant*> live;
    std::vector<const Grant*> ended;  // attempts that failed and leases given back, in this turn
    std::map<std::pair<std::string, std::uint64_t>, OwnerState> owners;
  };
  struct NameState {
    engine::Token largest_returned = 0;
    std::map<engine::Token, ClientId> tokens;
    std::vector<Grant*> claims;  // live, or lost and not yet at the end of their validity
    engine::Token register_token = 0;
    std::uint64_t register_value = 0;
    std::uint64_t updates = 0;
  };

  /// A call that waits in order.
  struct Waiting {
    engine::RequestId request = 0;
    ClientId client = 0;
    Instant began{};
    Instant stands_since{};  // its begin, or its last failure for a reason of its own
    Instant waits_until{};
    std::uint64_t line = 0;    // the number of its client's line, once it has asked
    bool by_owner = false;     // it begins to wait when the calls of its owner before it have ended
    bool short_lease = false;  // perhaps too short for the way to the nodes
    int overtaken = 0;
    bool gave_way = false;  // it failed for a reason of its own, and goes behind its client's calls
    Instant came_late = Instant::min();  // for the last time, by its client's clock
    std::set<std::uint32_t> known_at{};
    Instant known_since = engine::never;  // to a quorum
  };
  /// One that has left.
  struct Departed {
    engine::RequestId request = 0;
    ClientId client = 0;
    std::uint64_t line = 0;
    Instant began{};
    Instant at{};
  };
  /// The calls that wait for one name.
  struct Line {
    std::vector<Waiting> waiting;
    std::deque<Departed> departed;
    struct Numbered {
      std::uint64_t number = 0;
      Instant since{};
    };
    std::map<ClientId, Numbered> numbers;  // of clients' newest lines
    struct Pause {
      Instant since{};
      Instant ends{};  // by then a call of the client asks
      bool too_late = false;
    };
    std::map<ClientId, Pause> pauses;  // after a failure of a client's first call
    std::optional<Instant> free_since;
    std::optional<Instant> given_back;  // by who had it on a quorum; nobody has had it since
    std::uint64_t begun = 0;
    std::uint64_t asked = 0;
    std::uint64_t granted = 0;
  };
  [[nodiscard]] Duration rates_differ(Instant world, Instant began) const;
  [[nodiscard]] bool order_is_disputed(Instant world, const Line& line, const Waiting& who) const;
  void begins_to_wait(ClientId client, const Request& request);
  void wait_ends(Instant world, ClientId client, const Request& request);
  void given_back(Instant world, const Grant& grant);
  void gives_way(Instant world, const std::string& name, engine::RequestId request, bool too_late);
  void must_ask_again(Instant world, ClientId client, Line& line, bool too_late) const;
  void check_asked_again(Instant world, const std::string& name, Line& line) const;
  void asks_in_line(Instant now, const std::string& name, engine::RequestId request,
                    const engine::Place& place);
  [[nodiscard]] std::optional<ClientId> client_of(const NodeData::Waiter& waiter) const;
  [[nodiscard]] bool is_placed(Instant world, std::uint32_t node, const Waiting& who,
                               const std::vector<NodeData::Waiter>& there) const;
  void look_at_line(Instant world, std::uint32_t node, std::string_view name, const HeldLock& lock);
  void waiter_asked(const Grant& grant, const engine::Reply& reply);
  void check_order(Instant world, ClientId client, const Request& request);
  void check_free(Instant world, const std::string& name, Line& line);
  void check_departed(Instant world, const std::string& name, Line& line) const;
  [[nodiscard]] WellSince well_with_all(ClientId client) const;
  [[nodiscard]] bool two_are_away(Instant since) const;
  [[nodiscard]] bool stands_in(Instant world, std::uint32_t node, const std::string& name,
                               std::uint64_t line) const;

  [[nodiscard]] Instant local(Instant world, ClientId client) const;
  Grant* find(ClientId client, engine::GrantId grant);
  Grant& begin_grant(ClientId client, const engine::Send& send);
  void check_ended(Client& client) const;
  void attempt_over(Instant world, Client& client, engine::RequestId request);
  void attempt_replaced(Instant world, Client& client, engine::RequestId request);
  static const Grant* take_undecided(Client& client, engine::RequestId request);
  void end_claim(Grant& grant);

  void told_finish(Instant world, ClientId client, const engine::Finish& finish);
  void told_success(Instant world, ClientId client, const Request& request,
                    const engine::AcquireSucceeded& success);
  void told_forced(Instant world, const Forced& forced);
  void told_released(const Grant& grant, Released outcome) const;
  void told_entry(ClientId client, const Request& request, const engine::Finish& finish);
  static void check_entry(Grant& grant, const engine::EnterSucceeded& entered);
  void told_take(Instant now, ClientId client, const Request& request,
                 const engine::Finish& finish);
  [[nodiscard]] static std::uint32_t may_be_entered(const Grant& grant, Instant now);
  void told_decision(Instant world, ClientId client, const engine::AttemptDecided& decision);
  void check_no_quorum(Instant world, ClientId client, const Grant& grant,
                       const engine::AttemptDecided& decision) const;
  void told_validity(Instant world, ClientId client, engine::GrantId grant, Instant valid_until);
  void told_clock(Instant now, ClientId client, const engine::NodeClockMoved& moved);
  [[nodiscard]] Duration allowed(Duration between) const;
  [[nodiscard]] bool surely_theirs(const Client& client, std::uint32_t node, Duration by) const;
  [[nodiscard]] bool surely_ours(const Client& client, const Clock& moved) const;
  void told_lost(Instant world, ClientId client, const engine::LeaseLost& loss);
  void set_validity(Instant world, Grant& grant, Instant valid_until) const;
  [[nodiscard]] bool may_be_told_now(Instant world, const Grant& grant) const;
  void check_send(Instant world, Grant& grant, const engine::Send& send);
  void check_hold(Instant world, Grant& grant, const engine::Send& send);
  void check_heal(Instant world, const Grant& grant, const engine::Send& send) const;
  void check_token(Instant world, const Grant& grant);
  void check_forced(const Grant& grant) const;
  void check_turned_away(Instant world, std::uint32_t node, const HeldLock& lock,
                         const ScriptRun& run);
  void check_marker(std::uint32_t node, const ScriptRun& run) const;
  void check_key(Instant world, std::uint32_t node, const HeldLock& lock) const;
  void check_end(Instant world, std::uint32_t node, const std::string& key,
                 const Keyspace::Entry& entry) const;
  void check_size(Instant world, std::uint32_t node, const std::string& key,
                  const Keyspace::Entry& entry) const;
  void check_line_size(Instant world, std::uint32_t node, std::string_view key) const;
  void check_claim(Instant world, const Grant& grant);
  void check_live(Instant world, const Grant& grant) const;
  void check_lost(Instant world, ClientId client) const;
  void check_possession(Instant world, const Grant& grant) const;
  [[nodiscard]] bool may_lose_to_twin(Instant world, const Grant& grant) const;

  Judged judged_;
  JudgedWaiting waiting_;
  LooksWell well_since_;
  std::map<std::string, Line, std::less<>> lines_;
  std::unordered_map<std::uint64_t, ClientId> numbered_;  // lines, by their first calls
  std::vector<Instant> entered_;  // by node, when somebody last was put into a line, perhaps
  const std::vector<SimNode>& nodes_;
  const std::uint32_t members_;  // at least; others are none, or spares
  std::int64_t drift_ppm_;
  Duration max_lease_;
  testing::KeyTerms key_terms_;
  std::deque<Client> clients_;
  std::map<std::string, NameState> names_;
  std::map<std::array<std::uint64_t, 2>, Grant*> owners_;
  std::set<std::array<std::uint64_t, 2>> forced_;  // certainly, by a quorum
  /// By node and owner: until when, on the node's clock, it was told to turn the owner away.
  std::map<std::pair<std::uint32_t, std::array<std::uint64_t, 2>>, std::int64_t> turned_away_;
  std::map<std::uint64_t, Instant> members_made_;             // by epoch
  std::set<std::uint32_t> damaged_;                           // nodes
  std::map<std::array<std::uint64_t, 2>, bool> drawn_twice_;  // owners; whether for two names
  /// By name and owner, where attempts may share one: whose release was sent, and to which node.
  std::map<std::pair<std::string, std::array<std::uint64_t, 2>>,
           std::set<std::pair<const Grant*, std::uint32_t>>>
      twin_releases_;
  Counts counts_;
  std::uint64_t received_ = 0;  // answers and readings, by all clients
};

}  // namespace redlock::simulation
