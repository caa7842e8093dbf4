// SPDX-License-Identifier: MIT
// Certificates and keys out of PEM files, read whole: a problem is reported with its file before
// anything is sent. The files are read again on the loop's thread, when they have changed, so that
// reading must never wait.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "tls/openssl/openssl_context.hpp"

namespace redlock::tls {
namespace {

namespace fs = std::filesystem;
using FileProblem = std::optional<std::string>;

/// Many times the size of an authority's bundle.
constexpr std::size_t largest_file = std::size_t{16} << 20;
constexpr std::size_t at_a_time = std::size_t{64} << 10;

/// The text of a file, erased from memory afterwards: it may be a key.
class PemText {
 public:
  PemText() = default;
  ~PemText() { OPENSSL_cleanse(text_.data(), text_.size()); }
  PemText(const PemText&) = delete;
  PemText& operator=(const PemText&) = delete;

  [[nodiscard]] FileProblem read(const fs::path& path, FileReading how) {
    const int waits = how == FileReading::first ? 0 : O_NONBLOCK;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | waits);
    if (file < 0) return std::string("cannot be read: ") + std::strerror(errno);
    auto problem = read(file, how);
    ::close(file);
    return problem;
  }
  [[nodiscard]] bool begins_certificate() const {
    return text_.find("-----BEGIN CERTIFICATE-----") != std::string::npos;
  }
  [[nodiscard]] BioHandle bio() const {
    return BioHandle(BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size())));
  }

 private:
  [[nodiscard]] FileProblem read(int file, FileReading how) {
    struct stat about {};
    if (::fstat(file, &about) != 0) return std::string("cannot be read: ") + std::strerror(errno);
    if (S_ISDIR(about.st_mode)) return "is a directory; name a file";
    if (how == FileReading::again && !S_ISREG(about.st_mode)) {
      return "is not a file that can be read again; put a regular file there";
    }
    for (ssize_t count = 1; count > 0 && text_.size() <= largest_file;) {
      const std::size_t size = text_.size();
      text_.resize(size + at_a_time);  // a key fits into the first, which is erased
      do {
        count = ::read(file, text_.data() + size, at_a_time);
      } while (count < 0 && errno == EINTR);
      text_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      if (count < 0) return std::string("cannot be read: ") + std::strerror(errno);
    }
    if (text_.size() > largest_file) return "is larger than 16 MiB; name a file of PEM text";
    if (text_.empty()) return "is empty";
    return {};
  }

  std::string text_;
};

std::chrono::sys_seconds time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&parts)));
}

CertificatePeriod period_of(const X509* certificate, bool of_authority) {
  return {time_of(X509_get0_notBefore(certificate)), time_of(X509_get0_notAfter(certificate)),
          of_authority};
}

void note_first(std::optional<CertificatePeriod>& first, const CertificatePeriod& period) {
  if (!first || period.ends < first->ends) first = period;
}

/// Those that stand one behind the other.
[[nodiscard]] FileProblem find_certificates(const PemText& text,
                                            std::vector<CertificateHandle>& found) {
  const BioHandle bio = text.bio();
  ERR_clear_error();
  while (X509* const certificate = PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(certificate);
  }
  // This is how OpenSSL reports the end of a text.
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

FileProblem trust_folder(SSL_CTX& context, const fs::path& folder, FileReading how) {
  std::error_code error;
  fs::directory_iterator files(folder, error);
  if (error) return "tls.ca: " + folder.string() + " cannot be read: " + error.message();
  std::vector<CertificateHandle> found;
  for (; !error && files != fs::directory_iterator(); files.increment(error)) {
    std::error_code ignored;
    PemText text;
    if (!files->is_regular_file(ignored) || text.read(files->path(), how)) continue;
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

/// Where OpenSSL looks for the authorities of this system.
const char* of_system(const char* variable, const char* otherwise) {
  const char* named = ::secure_getenv(variable);
  return named != nullptr ? named : otherwise;
}

/// That it is there and when it was written, or moved there. For a pipe or a device always the
/// same: its first text stays in use.
void add_stamp(std::string& stamps, const fs::path& path) {
  struct stat about {};
  const auto add = [&stamps](const auto& value) {
    stamps.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const int missing = ::stat(path.c_str(), &about) == 0 ? 0 : errno;
  add(missing);
  add(about.st_mode);
  if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return;
  add(about.st_dev);
  add(about.st_ino);
  add(about.st_size);
  for (const auto& time : {about.st_mtim, about.st_ctim}) {
    add(time.tv_sec);
    add(time.tv_nsec);
  }
}

}  // namespace

std::string stamps_of(const TlsOptions& options) {
  std::string stamps;
  if (options.ca.empty()) {
    add_stamp(stamps, of_system(X509_get_default_cert_file_env(), X509_get_default_cert_file()));
    add_stamp(stamps, of_system(X509_get_default_cert_dir_env(), X509_get_default_cert_dir()));
  } else {
    add_stamp(stamps, options.ca);
    std::error_code error;
    fs::directory_iterator files(options.ca, error);  // an error that stands for "not a regular
                                                      // file"
    for (; !error && files != fs::directory_iterator(); files.increment(error)) {
      add_stamp(stamps, files->path());
    }
  }
  if (options.certificate.empty()) return stamps;
  add_stamp(stamps, options.certificate);
  add_stamp(stamps, options.key);
  return stamps;
}

std::optional<CertificatePeriod> first_to_end(const STACK_OF(X509) * chain) {
  std::optional<CertificatePeriod> first;
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    note_first(first, period_of(sk_X509_value(chain, i), i > 0));
  }
  return first;
}

FileProblem trust(SSL_CTX& context, const std::string& file_or_folder, FileReading how) {
  std::error_code error;
  if (fs::is_directory(file_or_folder, error)) return trust_folder(context, file_or_folder, how);
  PemText text;
  if (const auto problem = text.read(file_or_folder, how)) {
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

FileProblem show(LoadedFiles& loaded, const TlsOptions& files, FileReading how) {
  SSL_CTX& context = *loaded.context;
  const std::string& certificate = files.certificate;
  const std::string& key = files.key;
  PemText text;
  if (const auto problem = text.read(certificate, how)) {
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
  for (const auto& each : chain) {
    const bool between = &each != &chain.front();
    if (between) SSL_CTX_add1_chain_cert(&context, each.get());
    note_first(loaded.certificate, period_of(each.get(), between));
  }
  // One file for both is read once: another one, moved to its place meanwhile, has another key.
  PemText own_text;
  const bool apart = key != certificate;
  const auto problem = apart ? own_text.read(key, how) : FileProblem();
  if (problem) return "tls.key: " + key + " " + *problem;
  const PemText& key_text = apart ? own_text : text;
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
