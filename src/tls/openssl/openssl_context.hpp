// SPDX-License-Identifier: MIT
// The settings of a client as OpenSSL keeps them, made of its files and made anew when those have
// changed.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tls/openssl/handles.hpp"
#include "tls/tls_context.hpp"

namespace redlock::tls {

/// The settings from the files. An object never changes: newer files make another one.
struct LoadedFiles {
  ContextHandle context;
  std::optional<CertificatePeriod> certificate{};  // the client's own
};

class OpensslContext final : public TlsContext {
 public:
  explicit OpensslContext(TlsOptions options) : options_(std::move(options)) {}

  /// Reads the files for the first time; or a sentence.
  [[nodiscard]] std::optional<std::string> load();

  [[nodiscard]] std::unique_ptr<TlsPeer> peer(std::string name) override;
  [[nodiscard]] OwnCertificate own_certificate(std::chrono::sys_seconds now) override;

  struct Newest {
    std::shared_ptr<const LoadedFiles> files;
    std::string problem;  // why they are not those that the file system has
  };
  /// After load().
  [[nodiscard]] Newest newest(std::chrono::sys_seconds now);

 private:
  const TlsOptions options_;
  std::mutex mutex_;  // Admin's connections are made on a thread of their own
  std::shared_ptr<const LoadedFiles> files_;
  std::string stamps_;  // of the files that were read last, good or bad
  std::string problem_;
  std::chrono::sys_seconds read_at_{};
};

/// At first a file may be a pipe, for which the caller waits. It cannot be read again, and the loop
/// must not wait.
enum class FileReading { first, again };

// The context made from the files; or a sentence.

[[nodiscard]] std::optional<std::string> trust(SSL_CTX& context, const std::string& file_or_folder,
                                               FileReading how);
[[nodiscard]] std::optional<std::string> trust_system(SSL_CTX& context);
[[nodiscard]] std::optional<std::string> show(LoadedFiles& loaded, const TlsOptions& files,
                                              FileReading how);

/// A text that differs when one of the files has changed. Reads no file.
[[nodiscard]] std::string stamps_of(const TlsOptions& files);

/// Of these certificates, behind the first of which stand those that vouch for it, the one that
/// ends first; nothing if there are none.
[[nodiscard]] std::optional<CertificatePeriod> first_to_end(const STACK_OF(X509) * chain);

}  // namespace redlock::tls
