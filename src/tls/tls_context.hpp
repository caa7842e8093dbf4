// SPDX-License-Identifier: MIT
// What the TLS connections of a client share. Behind these interfaces stands OpenSSL, or, in a
// build without TLS, one sentence.
#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include <redlock/options.hpp>

#include "tls/tls_filter.hpp"

namespace redlock::tls {

/// One node, to which connections are made one after the other: keeps the session for the next.
class TlsPeer {
 public:
  virtual ~TlsPeer() = default;
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;

  /// A new connection, whose first message stands in its output. It must not outlive the peer.
  [[nodiscard]] virtual std::unique_ptr<TlsFilter> connect() = 0;

 protected:
  TlsPeer() = default;
};

/// Trusted authorities, and the client's certificate and key. Threads may share it, but not a peer.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// The node whose certificate must have this name, a host name or an address. It must not outlive
  /// the context.
  [[nodiscard]] virtual std::unique_ptr<TlsPeer> peer(std::string name) = 0;

 protected:
  TlsContext() = default;
};

/// Reads the files; or one sentence that says what is wrong with which.
[[nodiscard]] tl::expected<std::shared_ptr<TlsContext>, std::string> load(
    const TlsOptions& options);

}  // namespace redlock::tls
