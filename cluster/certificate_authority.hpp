// SPDX-License-Identifier: MIT
//
// Certificates for nodes and clients in tests: good ones, and those that must be refused. They are
// made in a few milliseconds, with OpenSSL, and live for a day.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace redlock::cluster {

/// PEM files.
struct IssuedCertificate {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

class CertificateAuthority {
 public:
  /// What a certificate says.
  struct CertificateTerms {
    std::vector<std::string> names = {};  ///< as in "DNS:node.example" and "IP:127.0.0.1"
    /// Counted from now.
    std::chrono::seconds valid_from = std::chrono::hours(-1);
    std::chrono::seconds valid_until = std::chrono::hours(24);
    bool signed_by_itself = false;
  };

  /// Keeps its files in this directory, which must exist. Throws FleetError, as all calls do.
  explicit CertificateAuthority(std::filesystem::path directory);
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  /// Its own certificate.
  [[nodiscard]] std::filesystem::path certificate() const { return directory_ / "authority.crt"; }
  /// Makes NAME.crt and NAME.key.
  [[nodiscard]] IssuedCertificate issue(const std::string& name,
                                        const CertificateTerms& terms) const;

 private:
  struct Pair;  // a certificate and its key

  std::filesystem::path directory_;
  std::unique_ptr<Pair> own_;
};

}  // namespace redlock::cluster
