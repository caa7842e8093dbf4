// SPDX-License-Identifier: MIT
// Real nodes with TLS, and the certificates for them and for clients. Some builds of redis-server
// have no TLS: a test file then says so, once, and counts as skipped.
#pragma once

#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <redlock/options.hpp>

#include "cluster/certificate_authority.hpp"
#include "cluster/fleet.hpp"
#include "support/temporary_directory.hpp"
#include "support/text.hpp"

namespace redlock::testing {

/// Replaces the file as people do it: what these have is moved to its place, whole.
inline void place(const std::filesystem::path& path,
                  std::initializer_list<std::filesystem::path> from) {
  const std::filesystem::path made = path.string() + ".new";
  std::ofstream file(made);
  for (const auto& source : from) file << text_in(source);
  file.close();
  std::filesystem::permissions(
      made, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::rename(made, path);
}

/// The files of a test program.
struct TlsFiles {
  explicit TlsFiles(const std::vector<std::string>& names = {"IP:127.0.0.1", "DNS:localhost"})
      : node(authority.issue("node", {.names = names})) {}

  TemporaryDirectory directory{"redlock-tls"};
  cluster::CertificateAuthority authority{directory.path()};
  cluster::IssuedCertificate node;
  cluster::IssuedCertificate client = authority.issue("client", {});

  static const TlsFiles& get() {
    static const TlsFiles files;
    return files;
  }

  /// Of a client that shows no certificate.
  [[nodiscard]] TlsOptions trusting() const { return {.ca = authority.certificate().string()}; }
  [[nodiscard]] TlsOptions complete() const {
    TlsOptions options = trusting();
    options.certificate = client.certificate.string();
    options.key = client.key.string();
    return options;
  }

  /// For FleetOptions: what nodes with this certificate are given.
  [[nodiscard]] cluster::FleetTls of(const cluster::IssuedCertificate& issued,
                                     bool clients_need_certificates = false) const {
    return {authority.certificate(), issued.certificate, issued.key, clients_need_certificates};
  }
};

/// Each test case of a file with nodes with TLS begins with: if (!server_has_tls()) return;
inline bool server_has_tls() {
  static const bool has_tls = [] {
    const auto why = message_of<cluster::FleetError>([] {
      const cluster::Fleet fleet({.nodes = 1, .tls = TlsFiles::get().of(TlsFiles::get().node)});
    });
    // What redis-server says of a setting that it does not know.
    if (!contains(why, "Bad directive")) return true;
    fmt::print("SKIPPED: this redis-server was built without TLS\n");
    return false;
  }();
  return has_tls;
}

}  // namespace redlock::testing
