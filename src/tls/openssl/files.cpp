// SPDX-License-Identifier: MIT
// Certificates and keys out of PEM files, read whole: what is missing or wrong in which file is
// said before anything is sent.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <system_error>
#include <vector>

#include "tls/openssl/openssl_context.hpp"

namespace redlock::tls {
namespace {

namespace fs = std::filesystem;
using FileProblem = std::optional<std::string>;

/// Many times what an authority's bundle takes.
constexpr std::size_t largest_file = std::size_t{16} << 20;
constexpr std::size_t at_a_time = std::size_t{64} << 10;

/// The text of a file, erased from memory afterwards: it may be a key.
class PemText {
 public:
  PemText() = default;
  ~PemText() { OPENSSL_cleanse(text_.data(), text_.size()); }
  PemText(const PemText&) = delete;
  PemText& operator=(const PemText&) = delete;

  [[nodiscard]] FileProblem read(const fs::path& path) {
    errno = 0;
    std::error_code error;
    if (fs::is_directory(path, error)) return "is a directory; name a file";
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::string("cannot be read: ") + std::strerror(errno);
    while (file && text_.size() <= largest_file) {
      const std::size_t size = text_.size();
      text_.resize(size + at_a_time);  // a key fits into the first, which is erased
      file.read(text_.data() + size, static_cast<std::streamsize>(at_a_time));
      text_.resize(size + static_cast<std::size_t>(file.gcount()));
    }
    if (file.bad()) return std::string("cannot be read: ") + std::strerror(errno);
    if (text_.size() > largest_file) return "is larger than 16 MiB; name a file of PEM text";
    if (text_.empty()) return "is empty";
    return {};
  }
  [[nodiscard]] bool begins_certificate() const {
    return text_.find("-----BEGIN CERTIFICATE-----") != std::string::npos;
  }
  [[nodiscard]] BioHandle bio() const {
    return BioHandle(BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size())));
  }

 private:
  std::string text_;
};

/// Those that stand one behind the other.
[[nodiscard]] FileProblem find_certificates(const PemText& text,
                                            std::vector<CertificateHandle>& found) {
  const BioHandle bio = text.bio();
  ERR_clear_error();
  while (X509* const certificate = PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(certificate);
  }
  // So OpenSSL tells the end of a text.
  const bool all = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!all) return "has a certificate that is damaged";
  if (found.empty()) return "has no certificate in PEM form";
  return {};
}

void add_to_store(SSL_CTX& context, const std::vector<CertificateHandle>& certificates) {
  for (const auto& certificate : certificates) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(&context), certificate.get());
  }
}

FileProblem trust_folder(SSL_CTX& context, const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator files(folder, error);
  if (error) return "tls.ca: " + folder.string() + " cannot be read: " + error.message();
  std::vector<CertificateHandle> found;
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    std::error_code ignored;
    PemText text;
    if (!files->is_regular_file(ignored) || text.read(files->path())) continue;
    const std::size_t before = found.size();
    const auto problem = find_certificates(text, found);
    // Another file may be anything; half an authority's certificate is a mistake.
    if (problem && (found.size() > before || text.begins_certificate())) {
      return "tls.ca: " + files->path().string() + " " + *problem;
    }
  }
  add_to_store(context, found);
  if (!found.empty()) return {};
  return "tls.ca: no file in " + folder.string() + " has a certificate in PEM form";
}

int no_passphrase(char* /*text*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

FileProblem trust(SSL_CTX& context, const std::string& file_or_folder) {
  std::error_code error;
  if (fs::is_directory(file_or_folder, error)) return trust_folder(context, file_or_folder);
  PemText text;
  if (const auto problem = text.read(file_or_folder)) {
    return "tls.ca: " + file_or_folder + " " + *problem;
  }
  std::vector<CertificateHandle> found;
  if (const auto problem = find_certificates(text, found)) {
    return "tls.ca: " + file_or_folder + " " + *problem;
  }
  add_to_store(context, found);
  return {};
}

FileProblem trust_system(SSL_CTX& context) {
  if (SSL_CTX_set_default_verify_paths(&context) == 1) return {};
  return "the system's certificates of authorities cannot be read; name a file with yours (tls.ca)";
}

FileProblem show(SSL_CTX& context, const std::string& certificate, const std::string& key) {
  PemText text;
  if (const auto problem = text.read(certificate)) {
    return "tls.certificate: " + certificate + " " + *problem;
  }
  std::vector<CertificateHandle> chain;
  if (const auto problem = find_certificates(text, chain)) {
    return "tls.certificate: " + certificate + " " + *problem;
  }
  if (SSL_CTX_use_certificate(&context, chain.front().get()) != 1) {
    return "tls.certificate: " + certificate +
           " cannot be used: " + ERR_reason_error_string(ERR_peek_last_error());
  }
  for (auto between = chain.begin() + 1; between != chain.end(); ++between) {
    SSL_CTX_add1_chain_cert(&context, between->get());
  }
  PemText key_text;
  if (const auto problem = key_text.read(key)) return "tls.key: " + key + " " + *problem;
  bool encrypted = false;
  const KeyHandle parsed(
      PEM_read_bio_PrivateKey(key_text.bio().get(), nullptr, &no_passphrase, &encrypted));
  if (encrypted) {
    return "tls.key: " + key + " is encrypted with a passphrase; decrypt it (openssl pkey)";
  }
  if (!parsed) return "tls.key: " + key + " has no private key in PEM form";
  if (SSL_CTX_use_PrivateKey(&context, parsed.get()) == 1 &&
      SSL_CTX_check_private_key(&context) == 1) {
    return {};
  }
  return "tls.key: " + key + " is not the key of the certificate in " + certificate;
}

}  // namespace redlock::tls
