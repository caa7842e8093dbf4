// SPDX-License-Identifier: MIT
// OpenSSL's objects with their owners.
#pragma once

#include <memory>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace redlock::tls {

/// A deleter out of a function of OpenSSL's.
template <auto release>
struct ReleasedBy {
  template <typename Object>
  void operator()(Object* object) const {
    release(object);
  }
};

using ContextHandle = std::unique_ptr<SSL_CTX, ReleasedBy<SSL_CTX_free>>;
using ConnectionHandle = std::unique_ptr<SSL, ReleasedBy<SSL_free>>;
using SessionHandle = std::unique_ptr<SSL_SESSION, ReleasedBy<SSL_SESSION_free>>;
using BioHandle = std::unique_ptr<BIO, ReleasedBy<BIO_free_all>>;
using CertificateHandle = std::unique_ptr<X509, ReleasedBy<X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, ReleasedBy<EVP_PKEY_free>>;
using NamesHandle = std::unique_ptr<GENERAL_NAMES, ReleasedBy<GENERAL_NAMES_free>>;

}  // namespace redlock::tls
