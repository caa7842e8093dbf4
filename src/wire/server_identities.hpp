// SPDX-License-Identifier: MIT
// Notices when two nodes of the list are one server (two names, an address written twice), which
// would vote twice. Equal run ids are a suspicion. The proof is a random key that is written
// through the node that is up, and read through the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/types.hpp"

namespace redlock::wire {

struct ServerFacts;

class ServerIdentities {
 public:
  /// Why a node is refused.
  enum class Evidence : std::uint8_t {
    claimed,     ///< both report one run id: the check is under way, or cannot be made now
    proved,      ///< they are one server
    unreadable,  ///< the node does not say what the key holds
    gave_way,    ///< it did not write the key, and leaves its place to the other
  };
  struct Suspicion {
    std::size_t twin = 0;  ///< the other node
    Evidence evidence = Evidence::claimed;
  };
  /// A key with an end, to be written through a node that is up.
  struct Write {
    std::size_t through = 0;
    std::string key;
    std::string value;
  };
  static constexpr std::chrono::milliseconds key_lasts{60'000};

  /// `databases`: which one of its server each node uses; keys of different ones prove nothing.
  ServerIdentities(std::vector<std::uint32_t> databases, engine::Duration max_lease)
      : databases_(std::move(databases)), max_lease_(max_lease), known_(databases_.size()) {}

  /// The key that the next handshake of the node is to read; empty: none.
  [[nodiscard]] std::string key_to_read(engine::Instant now, std::size_t node) const;
  /// The findings of the node's handshake: none if no other node is the same server, or may be.
  [[nodiscard]] std::optional<Suspicion> judge(engine::Instant now, std::size_t node,
                                               const ServerFacts& facts);
  /// The node is another server by now, which uses this database.
  void forget(std::size_t node, std::uint32_t database) {
    databases_[node] = database;
    known_[node] = {};
  }
  /// Of any client of the set, as far as it is known now.
  void set_longest_lease(engine::Duration lease) { max_lease_ = lease; }
  void set_up(engine::Instant now, std::size_t node, bool up);

  /// The write with which the check of a refused node begins; none if there is nothing to write
  /// now.
  [[nodiscard]] std::optional<Write> next_write(engine::Instant now, std::size_t node,
                                                engine::RandomSource& random);
  /// Whether that key was written. True: the node through which it was to be written gives way, and
  /// its connection is to be replaced.
  [[nodiscard]] bool on_written(std::size_t node, const Write& write, bool written);

 private:
  struct KeyCheck {
    Write write;
    std::string run_id;  // that both report
    engine::Instant begun{};
    bool written = false;
  };
  struct Difference {  // was proved
    std::size_t other = 0;
    std::string run_id;
    engine::Instant until{};
  };
  struct Known {
    std::string run_id;
    bool up = false;
    engine::Instant last_up{};  // of one that is down
    std::optional<std::size_t> twin;
    std::optional<KeyCheck> check;        // of one that is down, against its twin
    std::vector<Difference> differences;  // of one that is down
    int unwritten = 0;                    // keys in succession that it was to write
    std::optional<std::size_t> gives_way_to;
  };

  [[nodiscard]] bool may_have_voted(engine::Instant now, const Known& node) const;
  [[nodiscard]] bool gives_way(engine::Instant now, Known& node) const;
  [[nodiscard]] static bool is_proved(engine::Instant now, Known& node, const ServerFacts& facts);
  [[nodiscard]] static bool differs(engine::Instant now, const Known& node, std::size_t other,
                                    const std::string& run_id);

  std::vector<std::uint32_t> databases_;
  engine::Duration max_lease_;
  std::vector<Known> known_;
};

}  // namespace redlock::wire
