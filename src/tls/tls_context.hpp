// SPDX-License-Identifier: MIT
// The state that the TLS connections of a client share. Behind these interfaces stands OpenSSL, or,
// in a build without TLS, one sentence.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
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

  /// A new connection, whose first message stands in its output, with the files as they are now.
  /// Certificates are judged by this time. It must not outlive the peer.
  [[nodiscard]] virtual std::unique_ptr<TlsFilter> connect(std::chrono::sys_seconds now) = 0;

 protected:
  TlsPeer() = default;
};

/// The client's own certificate.
struct OwnCertificate {
  /// Of the certificates in its file, the one that ends first; none if it has no file.
  std::optional<CertificatePeriod> period{};
  std::string problem{};  ///< why files that changed are not in use; empty if they are
};

/// Trusted authorities, and the client's certificate and key: as the files are, which are read
/// again when they have changed. If changed files cannot be used, the earlier ones stay in use.
/// Threads may share it, but not a peer.
class TlsContext {
 public:
  virtual ~TlsContext() = default;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// The node whose certificate must have this name, a host name or an address. It must not outlive
  /// the context.
  [[nodiscard]] virtual std::unique_ptr<TlsPeer> peer(std::string name) = 0;

  [[nodiscard]] virtual OwnCertificate own_certificate(std::chrono::sys_seconds now) = 0;

 protected:
  TlsContext() = default;
};

/// Reads the files; or one sentence that says what is wrong with which.
[[nodiscard]] tl::expected<std::shared_ptr<TlsContext>, std::string> load(
    const TlsOptions& options);

}  // namespace redlock::tls
