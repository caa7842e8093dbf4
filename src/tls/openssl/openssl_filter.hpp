// SPDX-License-Identifier: MIT
// A filter made of an SSL object between two memory BIOs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tls/openssl/handles.hpp"
#include "tls/openssl/openssl_context.hpp"
#include "tls/openssl/tls_failure.hpp"
#include "tls/tls_filter.hpp"

namespace redlock::tls {

/// The session that the next connection to a node may resume, for as long as the certificates and
/// files that verified the first session are as good as then: however often a session is resumed,
/// no certificate is verified again.
struct KeptSession {
  SessionHandle handle{};
  std::shared_ptr<const LoadedFiles> files{};
  std::optional<CertificatePeriod> trusted_by{};
};

class OpensslFilter final : public TlsFilter {
 public:
  /// Verifies that the peer's certificate has this name, and is valid now. `session` is resumed if
  /// it may be; a newer one takes its place. Name and session must outlive the filter. `warning` is
  /// the problem of newer files.
  OpensslFilter(std::shared_ptr<const LoadedFiles> files, const std::string& name,
                KeptSession& session, std::chrono::sys_seconds now, std::string warning);
  ~OpensslFilter() override;

  void take(std::string_view encrypted) override;
  bool shake_hands() override;
  std::size_t read(char* into, std::size_t room) override;
  void write(std::string_view plain) override;
  void close() override;

  /// For SSL_CTX_sess_set_new_cb: keeps the session of a connection that belongs to a filter.
  static int keep_session(SSL* connection, SSL_SESSION* session);

 private:
  static int verify(int accepted, X509_STORE_CTX* verification);
  static int note_request(SSL* connection, void* self);

  [[nodiscard]] bool set_name();
  void resume(std::chrono::sys_seconds now);
  void note_trust();
  void judge(int result);
  void fail(TlsFailure failure);
  void collect_output();

  const std::shared_ptr<const LoadedFiles> files_;
  const std::string& name_;
  KeptSession& session_;
  ConnectionHandle connection_;
  BIO* received_ = nullptr;  // both belong to the connection
  BIO* to_send_ = nullptr;
  bool began_ = false;  // the peer has sent bytes
  bool asked_for_certificate_ = false;
};

}  // namespace redlock::tls
