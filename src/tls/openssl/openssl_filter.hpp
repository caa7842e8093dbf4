// SPDX-License-Identifier: MIT
// A filter made of an SSL object between two memory BIOs.
#pragma once

#include <string>
#include <string_view>

#include "tls/openssl/handles.hpp"
#include "tls/openssl/tls_failure.hpp"
#include "tls/tls_filter.hpp"

namespace redlock::tls {

class OpensslFilter final : public TlsFilter {
 public:
  /// Verifies that the peer's certificate has this name. `session` is resumed if it is not empty;
  /// a newer one takes its place. Both must outlive the filter.
  OpensslFilter(SSL_CTX& context, const std::string& name, SessionHandle& session);
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
  void resume();
  void judge(int result);
  void fail(TlsFailure failure);
  void collect_output();

  const std::string& name_;
  SessionHandle& session_;
  ConnectionHandle connection_;
  BIO* received_ = nullptr;  // both belong to the connection
  BIO* to_send_ = nullptr;
  bool began_ = false;  // the peer has sent something
  bool asked_for_certificate_ = false;
};

}  // namespace redlock::tls
