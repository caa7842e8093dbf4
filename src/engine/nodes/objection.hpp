// SPDX-License-Identifier: MIT
// Why a node that could be asked does not count: the engine's findings, in values. The sentences
// for people, which say what to do, are made in wire/objection_text.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/types.hpp"

namespace redlock::engine {

/// It may have forgotten a grant.
struct InQuarantine {
  enum class Reason : std::uint8_t {
    no_marker,  ///< it is new, or has lost its data
    promotion,  ///< it was a replica
    restart,    ///< and does not keep its data durably
  };
  Reason reason{};
  Duration votes_in{};  ///< zero: as soon as its marker is written
};

/// Its clock moved against ours, or that of another client, which left a note there.
struct ClockAstray {
  Duration ahead{};  ///< negative: back; zero: another client saw it
  Duration votes_in{};
};

/// This client runs without quarantine, and nodes of the set have markers.
struct MarkerUnwanted {
  bool is_its_own = false;  ///< or another node has one
};

/// Its marker names this set, but it is not known yet which set counts.
struct SetUndecided {
  std::string named;
};

/// Its marker names another set than a quorum of the nodes.
struct OtherSet {
  std::string named;
  std::optional<std::string> of_quorum;  ///< none: no quorum names one set
};

/// It is none of the set's members, or none any more.
struct NoMember {
  bool has_marker = false;           ///< which says that it was one
  std::vector<std::string> members;  ///< their addresses; empty if this client knows of no set
};

/// The client was given so few nodes that they are no quorum of the set's members.
struct TooFewListed {
  std::uint32_t listed = 0;
  std::uint32_t members = 0;
};

/// Its marker is from before the longest lease of the set was raised.
struct IsBehind {
  std::chrono::milliseconds there{};
  std::chrono::milliseconds of_quorum{};
};

/// The client may take longer leases than the node's marker allows to any client.
struct OtherMaxLease {
  std::chrono::milliseconds there{};
  std::chrono::milliseconds announced{};  ///< zero: none
  std::chrono::milliseconds here{};
};

using Objection =
    std::variant<std::monostate, InQuarantine, ClockAstray, MarkerUnwanted, SetUndecided, OtherSet,
                 NoMember, TooFewListed, OtherMaxLease, IsBehind>;

}  // namespace redlock::engine
