// SPDX-License-Identifier: MIT
// A resource that is owned by a C++ program, protected by fencing tokens. A holder that was paused
// past its lease does not know that another holder works now; the guard turns the late holder away,
// because it has seen the other's larger token.
#pragma once

#include <redlock/cpp20.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

#include <redlock/export.hpp>

namespace redlock {

/// Why a FenceGuard did not run the given work.
struct FenceRefusal {
  /// What kept the work from running.
  enum class Why : std::uint8_t {
    /// A larger token was seen: the lease behind this token is over, and its holder must stop. Also
    /// the answer to 0, which is no token.
    stale,
    /// The resource is new, and the guard remembers as many resources as it may. Nothing is
    /// forgotten to make room, because a forgotten token would be accepted again.
    full,
    /// This thread is inside run() on this resource already, and would wait for itself for ever.
    nested,
  };

  Why why = Why::stale;  ///< what kept the work from running
  /// The largest token that the resource has seen; 0 if it has seen none.
  std::uint64_t seen = 0;
};

/// Remembers the largest token of each resource and lets no holder of a smaller token touch it.
///
/// A guard protects resources that this process owns, for as long as the guard lives: put one
/// beside the resources, where all their users go through it, and give it the stamps that were
/// stored (see stamp()) before the first of them after a restart. All functions may be called by
/// any thread.
class REDLOCK_EXPORT FenceGuard {
 public:
  /// Room for this many resources, about 120 bytes each, more where names are longer than 15 bytes.
  explicit FenceGuard(std::size_t limit = 1'000'000);
  ~FenceGuard();
  FenceGuard(const FenceGuard&) = delete;
  FenceGuard& operator=(const FenceGuard&) = delete;

  /// Runs `work` unless a token larger than `token` was seen for this resource, and answers with
  /// what it returns. Check, stamp and work are one step: no other thread works on the same
  /// resource meanwhile (others wait), and every smaller token comes too late once the step has
  /// begun, also if `work` throws. Read inside `work` what you are going to change: an older holder
  /// may have changed what you read before the stamp. The same token may come again. Work that
  /// enters another resource waits for it while no other thread can enter this one: all threads
  /// that nest resources have to enter them in one order, as with mutexes.
  template <typename Work>
  [[nodiscard]] tl::expected<std::invoke_result_t<Work>, FenceRefusal> run(
      std::string_view resource, std::uint64_t token, Work&& work) {
    const tl::expected<Turn, FenceRefusal> turn = enter(resource, token);
    if (!turn) return tl::make_unexpected(turn.error());
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      std::invoke(std::forward<Work>(work));
      return {};
    } else {
      return std::invoke(std::forward<Work>(work));
    }
  }

  /// Only stamps: from now on smaller tokens are refused. Also restores a stamp that was stored.
  [[nodiscard]] tl::expected<void, FenceRefusal> stamp(std::string_view resource,
                                                       std::uint64_t token);

  /// The largest token seen for this resource; empty if there was none.
  [[nodiscard]] std::optional<std::uint64_t> seen(std::string_view resource) const;

  /// How many resources have been seen.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Resource;
  struct Leave {
    void operator()(Resource* resource) const;
  };
  /// The thread that has the turn is alone with the resource.
  using Turn = std::unique_ptr<Resource, Leave>;
  class Impl;

  [[nodiscard]] tl::expected<Turn, FenceRefusal> enter(std::string_view resource,
                                                       std::uint64_t token);

  std::unique_ptr<Impl> impl_;
};

}  // namespace redlock
