// SPDX-License-Identifier: MIT
// TLS between two strings of bytes: those of the network on one side, those of a link on the other.
// No socket, thread or clock. A filter is used by one thread at a time, by any.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <redlock/error.hpp>

namespace redlock::tls {

/// The time for which a certificate is valid.
struct CertificatePeriod {
  std::chrono::sys_seconds begins;
  std::chrono::sys_seconds ends;
  bool of_authority = false;  ///< an authority's certificate, not the presented one
};

class TlsFilter {
 public:
  enum class State : std::uint8_t {
    handshake,
    open,
    closed,  ///< the peer has ended it in order
    failed,
  };

  virtual ~TlsFilter() = default;
  TlsFilter(const TlsFilter&) = delete;
  TlsFilter& operator=(const TlsFilter&) = delete;

  /// Takes bytes of the network; shake_hands() and read() process them.
  virtual void take(std::string_view encrypted) = 0;
  /// Goes on with the handshake. True: it is open now.
  [[nodiscard]] virtual bool shake_hands() = 0;
  /// Once open: writes up to `room` decrypted bytes there. 0: no more until more bytes are taken
  /// in.
  [[nodiscard]] virtual std::size_t read(char* into, std::size_t room) = 0;
  /// Once open: all of it.
  virtual void write(std::string_view plain) = 0;
  /// Tells the peer that nothing more follows.
  virtual void close() = 0;

  /// The bytes to send; the sender takes them out.
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] State state() const { return state_; }
  /// Once failed: a sentence.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] Cause cause() const { return cause_; }
  /// Once open: whether an earlier session was resumed.
  [[nodiscard]] bool resumed() const { return resumed_; }
  /// Once open: of the certificates by which the peer is trusted, the one that ends first. Those of
  /// the first session, if that was resumed.
  [[nodiscard]] const std::optional<CertificatePeriod>& trusted_by() const { return trusted_by_; }
  /// The problem of this client's files, so that older ones are in use; empty if there is none.
  [[nodiscard]] const std::string& warning() const { return warning_; }

 protected:
  TlsFilter() = default;

  std::string output_;
  State state_ = State::handshake;
  std::string problem_;
  Cause cause_ = Cause::none;
  bool resumed_ = false;
  std::optional<CertificatePeriod> trusted_by_;
  std::string warning_;
};

}  // namespace redlock::tls
