// SPDX-License-Identifier: MIT
#include "tls/openssl/openssl_context.hpp"

#include <algorithm>
#include <openssl/err.h>
#include <utility>

#include "tls/openssl/openssl_filter.hpp"

namespace redlock::tls {
namespace {

class OpensslPeer final : public TlsPeer {
 public:
  OpensslPeer(SSL_CTX& context, std::string name) : context_(context), name_(std::move(name)) {
    // Neither is part of the name in a certificate: the dot of a name that is complete, the
    // interface of an address.
    if (name_.ends_with('.')) name_.pop_back();
    name_.erase(std::min(name_.find('%'), name_.size()));
  }

  std::unique_ptr<TlsFilter> connect() override {
    return std::make_unique<OpensslFilter>(context_, name_, session_);
  }

 private:
  SSL_CTX& context_;
  std::string name_;
  SessionHandle session_;
};

std::optional<std::string> configure(SSL_CTX& context, const TlsOptions& options) {
  if (SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION) != 1) {
    return "this system's OpenSSL has no TLS 1.2";
  }
  SSL_CTX_set_options(&context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(&context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  // Whoever names the certificate of an authority between trusts it.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(&context), X509_V_FLAG_PARTIAL_CHAIN);
  // Kept for each node, by the callback: a session of one is none of another's.
  SSL_CTX_set_session_cache_mode(&context,
                                 SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(&context, &OpensslFilter::keep_session);
  if (auto problem = options.ca.empty() ? trust_system(context) : trust(context, options.ca)) {
    return problem;
  }
  if (options.certificate.empty()) return {};
  return show(context, options.certificate, options.key);
}

}  // namespace

std::unique_ptr<TlsPeer> OpensslContext::peer(std::string name) {
  return std::make_unique<OpensslPeer>(*context_, std::move(name));
}

tl::expected<std::shared_ptr<TlsContext>, std::string> load(const TlsOptions& options) {
  // Without OpenSSL's own end at exit(): a client in a static object may live longer than that.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  ContextHandle context(SSL_CTX_new(TLS_client_method()));
  auto problem = context ? configure(*context, options)
                         : std::optional<std::string>("this system's OpenSSL cannot be used");
  ERR_clear_error();
  if (problem) return tl::unexpected(std::move(*problem));
  return std::make_shared<OpensslContext>(std::move(context));
}

}  // namespace redlock::tls
