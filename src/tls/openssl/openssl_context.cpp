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
  OpensslPeer(OpensslContext& context, std::string name)
      : context_(context), name_(std::move(name)) {
    // Neither is part of the name in a certificate: the dot of a name that is complete, the
    // interface of an address.
    if (name_.ends_with('.')) name_.pop_back();
    name_.erase(std::min(name_.find('%'), name_.size()));
  }

  std::unique_ptr<TlsFilter> connect(std::chrono::sys_seconds now) override {
    auto [files, problem] = context_.newest(now);
    return std::make_unique<OpensslFilter>(std::move(files), name_, session_, now,
                                           std::move(problem));
  }

 private:
  OpensslContext& context_;
  std::string name_;
  KeptSession session_;
};

std::optional<std::string> configure(LoadedFiles& loaded, const TlsOptions& options,
                                     FileReading how) {
  SSL_CTX& context = *loaded.context;
  if (SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION) != 1) {
    return "this system's OpenSSL has no TLS 1.2";
  }
  SSL_CTX_set_options(&context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(&context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  // A program that names the certificate of an intermediate authority trusts it.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(&context), X509_V_FLAG_PARTIAL_CHAIN);
  // The callback keeps sessions for each node: a session of one node is of no use for another.
  SSL_CTX_set_session_cache_mode(&context,
                                 SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(&context, &OpensslFilter::keep_session);
  if (auto problem = options.ca.empty() ? trust_system(context) : trust(context, options.ca, how)) {
    return problem;
  }
  if (options.certificate.empty()) return {};
  return show(loaded, options, how);
}

/// Whole or not at all: a file that is half written changes nothing.
std::optional<std::string> read_files(const TlsOptions& options, FileReading how,
                                      std::shared_ptr<const LoadedFiles>& files) {
  auto loaded = std::make_shared<LoadedFiles>();
  loaded->context.reset(SSL_CTX_new(TLS_client_method()));
  auto problem =
      loaded->context ? configure(*loaded, options, how) : "this system's OpenSSL cannot be used";
  ERR_clear_error();
  if (!problem) files = std::move(loaded);
  return problem;
}

}  // namespace

std::optional<std::string> OpensslContext::load() {
  // Taken before the files are read: a file that is written meanwhile has another stamp.
  stamps_ = stamps_of(options_);
  return read_files(options_, FileReading::first, files_);
}

OpensslContext::Newest OpensslContext::newest(std::chrono::sys_seconds now) {
  const std::scoped_lock lock(mutex_);
  auto stamps = stamps_of(options_);
  // Bad files are read once a second at most: the system may have been short of a resource.
  const bool again = !problem_.empty() && now != read_at_;
  if (again || stamps != stamps_) {
    read_at_ = now;
    problem_ = read_files(options_, FileReading::again, files_).value_or("");
    if (!problem_.empty())
      problem_ += "; the files that were read before are used until that is fixed";
    stamps_ = std::move(stamps);  // not earlier: if memory runs out above, the files are read again
  }
  return {files_, problem_};
}

OwnCertificate OpensslContext::own_certificate(std::chrono::sys_seconds now) {
  auto [files, problem] = newest(now);
  return {files->certificate, std::move(problem)};
}

std::unique_ptr<TlsPeer> OpensslContext::peer(std::string name) {
  return std::make_unique<OpensslPeer>(*this, std::move(name));
}

tl::expected<std::shared_ptr<TlsContext>, std::string> load(const TlsOptions& options) {
  // Without OpenSSL's own end at exit(): a client in a static object may live longer than that.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  auto context = std::make_shared<OpensslContext>(options);
  if (auto problem = context->load()) return tl::unexpected(std::move(*problem));
  return context;
}

}  // namespace redlock::tls
