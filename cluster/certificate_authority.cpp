// SPDX-License-Identifier: MIT
#include "certificate_authority.hpp"

#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <utility>

#include "fleet_error.hpp"

namespace redlock::cluster {
namespace {

void require(bool done, const char* what) {
  if (!done) throw FleetError(fmt::format("OpenSSL cannot {} for a test", what));
}

void extend(X509* certificate, X509* issuer, int extension, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, &context, extension, value.c_str());
  require(made != nullptr && X509_add_ext(certificate, made, -1) == 1, "extend a certificate");
  X509_EXTENSION_free(made);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

/// What `print` writes is readable by its owner only: it may be a key.
template <typename Print>
void save_to(const std::filesystem::path& path, const Print& print) {
  BIO* const file = BIO_new_file(path.c_str(), "w");
  require(file != nullptr && print(file) == 1, "write a file");
  BIO_free(file);
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace

struct CertificateAuthority::Pair {
  struct Close {
    void operator()(X509* object) const { X509_free(object); }
    void operator()(EVP_PKEY* object) const { EVP_PKEY_free(object); }
  };
  std::unique_ptr<X509, Close> certificate{X509_new()};
  std::unique_ptr<EVP_PKEY, Close> key{EVP_EC_gen("P-256")};

  Pair(const std::string& name, const CertificateTerms& terms) {
    require(certificate && key, "make a key");
    X509* const made = certificate.get();
    std::uint32_t serial = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), serial);
    X509_gmtime_adj(X509_getm_notBefore(made), terms.valid_from.count());
    X509_gmtime_adj(X509_getm_notAfter(made), terms.valid_until.count());
    X509_set_pubkey(made, key.get());
    const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8, text, -1, -1, 0);
  }

  void sign_with(const Pair& issuer, const char* constraints) const {
    X509* const made = certificate.get();
    X509* const by = issuer.certificate.get();
    X509_set_issuer_name(made, X509_get_subject_name(by));
    extend(made, by, NID_basic_constraints, constraints);
    extend(made, by, NID_subject_key_identifier, "hash");
    if (&issuer != this) extend(made, by, NID_authority_key_identifier, "keyid");
    require(X509_sign(made, issuer.key.get(), EVP_sha256()) > 0, "sign a certificate");
  }

  void save(const IssuedCertificate& files) const {
    save_to(files.certificate,
            [&](BIO* file) { return PEM_write_bio_X509(file, certificate.get()); });
    save_to(files.key, [&](BIO* file) {
      return PEM_write_bio_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
};

CertificateAuthority::CertificateAuthority(std::filesystem::path directory)
    : directory_(std::move(directory)),
      own_(std::make_unique<Pair>("authority for tests", CertificateTerms{})) {
  extend(own_->certificate.get(), own_->certificate.get(), NID_key_usage,
         "critical,keyCertSign,cRLSign");
  own_->sign_with(*own_, "critical,CA:TRUE");
  own_->save({certificate(), directory_ / "authority.key"});
}

CertificateAuthority::~CertificateAuthority() = default;

IssuedCertificate CertificateAuthority::issue(const std::string& name,
                                              const CertificateTerms& terms) const {
  const Pair made(name, terms);
  const Pair& issuer = terms.signed_by_itself ? made : *own_;
  if (!terms.names.empty()) {
    extend(made.certificate.get(), issuer.certificate.get(), NID_subject_alt_name,
           joined(terms.names));
  }
  made.sign_with(issuer, "CA:FALSE");
  IssuedCertificate files{directory_ / (name + ".crt"), directory_ / (name + ".key")};
  made.save(files);
  return files;
}

}  // namespace redlock::cluster
