// SPDX-License-Identifier: MIT
#include "wire/objection_text.hpp"

#include <chrono>
#include <cstddef>
#include <variant>

namespace redlock::wire {
namespace {

constexpr const char* adopt_it =
    "; run redlock adopt if the set is new, with --replaced NODE if this member lost its data and "
    "its "
    "old leases are over";

/// For people who wait: "12 s", rounded up.
std::string in_seconds(engine::Duration left) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
}

std::string name_of(const std::string& set) {
  constexpr std::size_t enough = 8;
  return "set " + (set.size() > enough ? set.substr(0, enough) + "..." : set);
}

struct ObjectionWriter {
  std::string operator()(std::monostate /*none*/) const { return {}; }

  std::string operator()(const engine::InQuarantine& why) const {
    if (why.votes_in == engine::Duration::zero()) {
      return "quarantined; its marker is about to be written";
    }
    const std::string until = "quarantined, votes in " + in_seconds(why.votes_in);
    switch (why.reason) {
      case engine::InQuarantine::Reason::no_marker:
        return until + adopt_it;
      case engine::InQuarantine::Reason::promotion:
        return until +
               ": it was a replica, and may lack the newest locks; run redlock adopt if it "
               "has them, with --replaced NODE if it has no marker";
      case engine::InQuarantine::Reason::restart:
        break;
    }
    return until +
           ": it was restarted and may have forgotten locks (set appendonly yes and appendfsync "
           "always to avoid this next time)";
  }

  std::string operator()(const engine::ClockAstray& why) const {
    const auto by = std::chrono::round<std::chrono::milliseconds>(std::chrono::abs(why.ahead));
    const std::string moved = std::string(why.ahead > engine::Duration::zero() ? "ahead" : "back") +
                              " by " + std::to_string(by.count()) + " ms against ours";
    const bool by_others = why.ahead == engine::Duration::zero();
    return (by_others ? "another client saw its clock move" : "its clock went " + moved) +
           "; it votes in " + in_seconds(why.votes_in) +
           " if it keeps time until then: let chrony slew it, and step it only before "
           "redis-server starts";
  }

  std::string operator()(const engine::MarkerUnwanted& why) const {
    return std::string(why.is_its_own ? "it has a marker" : "a node of this set has a marker") +
           ", and this client runs without quarantine, which would let two programs hold one lock; "
           "use Quarantine::on, or nodes without markers";
  }

  std::string operator()(const engine::SetUndecided& why) const {
    return "it names " + name_of(why.named) +
           "; until a quorum of nodes is reached, it is unknown which set counts";
  }

  std::string operator()(const engine::OtherSet& why) const {
    if (!why.of_quorum) {
      return "its marker names " + name_of(why.named) +
             ", and no quorum of the nodes names one set; check the list of nodes (redlock "
             "doctor)";
    }
    const std::string what = "its marker names " + name_of(why.named) +
                             ", those of a quorum name " + name_of(*why.of_quorum);
    return what +
           ": it belongs to another set; correct the list of nodes, or DEL redlock:node there when "
           "its old leases are over, and run redlock adopt --replaced NODE";
  }

  std::string operator()(const engine::TooFewListed& why) const {
    return "its marker says nodes " + std::to_string(why.members) + ", this client " +
           std::to_string(why.listed) +
           "; give every client the members of the set, or find them by one of them (find_set(), "
           "redlock set show)";
  }

  std::string operator()(const engine::OtherMaxLease& why) const {
    const std::string here = std::to_string(why.here.count());
    return "its marker says max_lease_ms " + std::to_string(why.there.count()) +
           (why.announced == why.announced.zero()
                ? ""
                : " (" + std::to_string(why.announced.count()) + " is announced)") +
           ", this client " + here +
           "; give this client no longer lease or max_lease (REDLOCK_MAX_LEASE) than the set has, "
           "or raise that first (redlock set max-lease)";
  }

  std::string operator()(const engine::IsBehind& why) const {
    return "its marker says max_lease_ms " + std::to_string(why.there.count()) +
           ", those of a quorum up to " + std::to_string(why.of_quorum.count()) +
           ": it came back with older data, or was not told; give redlock set max-lease once more, "
           "or run redlock adopt if it names other members as well";
  }

  std::string operator()(const engine::NoMember& why) const {
    if (why.members.empty()) return sentence_of_missing_marker();
    std::string what = why.has_marker ? "it is no member of its set any more"
                                      : "it has no marker, and is no member of the set";
    for (const std::string& member : why.members) {
      what += (&member == &why.members.front() ? ", whose members are " : ", ") + member;
    }
    return what + ": correct the list of nodes" +
           (why.has_marker ? ""
                           : ", or give it the place of a member "
                             "(redlock set replace OLD NEW)");
  }
};

}  // namespace

std::string sentence_of(const engine::Objection& objection) {
  return std::visit(ObjectionWriter(), objection);
}

std::string sentence_of_missing_marker() {
  return std::string("it has no marker") + adopt_it;
}

std::string sentence_of(const engine::Objection& objection, const std::string& detail) {
  const std::string sentence = sentence_of(objection);
  return sentence.empty() || detail.empty() ? sentence + detail : sentence + "; " + detail;
}

}  // namespace redlock::wire
