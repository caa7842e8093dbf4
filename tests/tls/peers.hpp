// SPDX-License-Identifier: MIT
// A filter and a server of OpenSSL's, joined by strings: no socket, no time.
#pragma once

#include <algorithm>
#include <chrono>
#include <doctest/doctest.h>
#include <memory>
#include <openssl/ssl.h>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/certificate_authority.hpp"
#include "support/tls_nodes.hpp"
#include "tls/tls_context.hpp"

namespace redlock::tls {

using cluster::CertificateAuthority;
using cluster::IssuedCertificate;
using Terms = CertificateAuthority::CertificateTerms;
using State = TlsFilter::State;

/// Files that last as long as the program.
struct Certificates : testing::TlsFiles {
  Certificates() : TlsFiles({"DNS:node.example", "IP:10.0.0.1"}) {}

  testing::TemporaryDirectory elsewhere{"redlock-tls-other"};
  CertificateAuthority stranger{elsewhere.path()};
};

inline Certificates& files() {
  static Certificates certificates;
  return certificates;
}

inline std::shared_ptr<TlsContext> loaded(const TlsOptions& options) {
  auto context = load(options);
  REQUIRE_MESSAGE(context.has_value(), context.error());
  return *context;
}

/// What a server is made of; several connections share it, and its tickets.
class ServerContext {
 public:
  explicit ServerContext(const IssuedCertificate& own, int version = 0)
      : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    REQUIRE(SSL_CTX_use_certificate_file(get(), own.certificate.c_str(), SSL_FILETYPE_PEM) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(get(), own.key.c_str(), SSL_FILETYPE_PEM) == 1);
    const unsigned char id = 1;
    SSL_CTX_set_session_id_context(get(), &id, 1);
    if (version != 0) {
      SSL_CTX_set_min_proto_version(get(), version);
      SSL_CTX_set_max_proto_version(get(), version);
    }
  }
  void demand_certificates() {
    const auto ca = files().authority.certificate();
    REQUIRE(SSL_CTX_load_verify_file(get(), ca.c_str()) == 1);
    SSL_CTX_set_verify(get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  [[nodiscard]] SSL_CTX* get() const { return context_.get(); }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
};

class ServerSide {
 public:
  explicit ServerSide(const ServerContext& context)
      : connection_(SSL_new(context.get()), &SSL_free) {
    SSL_set_bio(get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(get());
  }
  [[nodiscard]] SSL* get() const { return connection_.get(); }

  /// Takes what the client sent; what it answers.
  std::string take(const std::string& bytes) {
    if (!bytes.empty())
      BIO_write(SSL_get_rbio(get()), bytes.data(), static_cast<int>(bytes.size()));
    std::string part(16'384, ' ');
    if (SSL_do_handshake(get()) == 1) {
      std::size_t count = 0;
      while (SSL_read_ex(get(), part.data(), part.size(), &count) == 1) {
        received.append(part, 0, count);
      }
    }
    return output();
  }
  std::string write(const std::string& plain) {
    std::size_t count = 0;
    REQUIRE(SSL_write_ex(get(), plain.data(), plain.size(), &count) == 1);
    return output();
  }
  std::string output() {
    std::string bytes(BIO_ctrl_pending(SSL_get_wbio(get())), ' ');
    if (!bytes.empty()) BIO_read(SSL_get_wbio(get()), bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

  std::string received;

 private:
  std::unique_ptr<SSL, decltype(&SSL_free)> connection_;
};

inline std::string sent(TlsFilter& filter) {
  return std::exchange(filter.output(), {});
}

inline std::string decrypted(TlsFilter& filter) {
  static_cast<void>(filter.shake_hands());
  std::string text;
  std::string part(1'000, ' ');
  while (const std::size_t count = filter.read(part.data(), part.size()))
    text.append(part, 0, count);
  return text;
}

/// A new connection, now or at another time.
inline std::unique_ptr<TlsFilter> connect(TlsPeer& peer, std::chrono::seconds later = {}) {
  return peer.connect(
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() + later));
}

/// Carries bytes to and fro until there are none; each answer in pieces of this size. What the
/// client could decrypt meanwhile.
inline std::string converse(TlsFilter& filter, ServerSide& server, std::size_t piece = 100'000) {
  std::string text;
  for (std::string answer = server.take(sent(filter)); !answer.empty();
       answer = server.take(sent(filter))) {
    for (std::size_t at = 0; at < answer.size(); at += piece) {
      filter.take(std::string_view(answer).substr(at, piece));
      text += decrypted(filter);
    }
  }
  return text;
}

/// What becomes of a connection to such a server.
struct Encounter {
  Encounter(const TlsOptions& options, const ServerContext& server, const std::string& name)
      : context(loaded(options)), peer(context->peer(name)), filter(connect(*peer)), side(server) {
    converse(*filter, side);
  }
  std::shared_ptr<TlsContext> context;
  std::unique_ptr<TlsPeer> peer;
  std::unique_ptr<TlsFilter> filter;
  ServerSide side;
};

}  // namespace redlock::tls
