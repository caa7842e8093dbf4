// SPDX-License-Identifier: MIT
#include "tls/openssl/tls_failure.hpp"

#include <arpa/inet.h>
#include <array>
#include <openssl/err.h>
#include <openssl/sslerr.h>

namespace redlock::tls {
namespace {

constexpr std::size_t most_names = 5;
constexpr std::size_t longest_name = 253;

/// A certificate comes from an unknown peer: only characters that a name may have are repeated.
std::string printable_name(std::string_view name) {
  std::string result(name.substr(0, longest_name));
  for (char& c : result) {
    if (c <= ' ' || c > '~') c = '?';
  }
  return result;
}

std::string address_of(const ASN1_OCTET_STRING* bytes) {
  const int size = ASN1_STRING_length(bytes);
  if (size != sizeof(in_addr) && size != sizeof(in6_addr)) return "no address";
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(),
            text.size());
  return text.data();
}

/// "it is for a.example, 10.0.0.1".
std::string names_in(X509* certificate) {
  const NamesHandle names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string list;
  std::size_t count = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    std::string text;
    if (name->type == GEN_DNS) {
      const auto* const data = ASN1_STRING_get0_data(name->d.dNSName);
      text.assign(data, data + ASN1_STRING_length(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      text = address_of(name->d.iPAddress);
    } else {
      continue;
    }
    if (++count > most_names) continue;
    if (!list.empty()) list += ", ";
    list += printable_name(text);
  }
  if (list.empty()) return "it has no subjectAltName";
  if (count > most_names) list += " and " + std::to_string(count - most_names) + " more";
  return "it is for " + list;
}

std::string in_words(const ASN1_TIME* time) {
  const BioHandle text(BIO_new(BIO_s_mem()));
  if (!text || time == nullptr || ASN1_TIME_print(text.get(), time) != 1) return "an unknown time";
  std::array<char, 64> line{};
  const int size = BIO_read(text.get(), line.data(), static_cast<int>(line.size()));
  return {line.data(), static_cast<std::size_t>(size < 0 ? 0 : size)};
}

std::string reason_of(unsigned long error) {
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown" : reason;
}

/// The peer's verdict on this client's certificate.
bool refuses_certificate(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return true;
    default:
      return false;
  }
}

/// TLS 1.2 has no alert of its own for it.
bool misses_certificate(int reason, const ClientPart& client) {
  if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) return true;
  const bool may_mean_it =
      reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE || reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
  return may_mean_it && client.asked_for_certificate && !client.has_certificate;
}

bool differs_in_version(int reason) {
  return reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || reason == SSL_R_UNSUPPORTED_PROTOCOL ||
         reason == SSL_R_WRONG_SSL_VERSION || reason == SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY;
}

}  // namespace

std::string describe_refusal(X509_STORE_CTX& verification, const std::string& name) {
  const int error = X509_STORE_CTX_get_error(&verification);
  X509* const certificate = X509_STORE_CTX_get_current_cert(&verification);
  const bool own = X509_STORE_CTX_get_error_depth(&verification) == 0;
  const std::string whose = own ? "its certificate" : "a certificate that vouches for its own";
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return whose + " has expired, on " + in_words(X509_get0_notAfter(certificate)) +
             "; give the node a new one";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return whose + " is not valid before " + in_words(X509_get0_notBefore(certificate)) +
             "; correct this machine's clock, or give the node another certificate";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "its certificate is not for " + name + " (" + names_in(certificate) +
             "); correct the node's URI, or set the name that the certificate has (tls.name; "
             "REDLOCK_TLS_NAME)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "its certificate is self-signed, and is not among those that are trusted; give "
             "the node a certificate of your authority, or trust this one (tls.ca; REDLOCK_TLS_CA)";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its certificate comes from an authority that is not trusted here; name that "
             "authority's "
             "certificate (tls.ca; REDLOCK_TLS_CA), or give the node one from a trusted authority";
    default:
      return whose + " is refused: " + X509_verify_cert_error_string(error);
  }
}

TlsFailure describe_error(const ClientPart& client) {
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  if (misses_certificate(reason, client)) {
    return {
        "it wants a certificate of this client, which has none; give it one (tls.certificate and "
        "tls.key; REDLOCK_TLS_CERT and REDLOCK_TLS_KEY)"};
  }
  if (refuses_certificate(reason) && client.asked_for_certificate) {
    return {"it refuses the certificate of this client (" + reason_of(error) +
            "); give one that the node's authority has signed (tls.certificate; REDLOCK_TLS_CERT)"};
  }
  if (differs_in_version(reason)) {
    return {"it has no TLS 1.2 or newer in common with this client (" + reason_of(error) +
            "); set its tls-protocols"};
  }
  if (!client.open) return {"the TLS handshake failed: " + reason_of(error)};
  return {"it sent broken TLS: " + reason_of(error), Cause::protocol_error};
}

std::string describe_plaintext(std::string_view bytes) {
  constexpr std::string_view beginnings_of_replies = "+-:$*%~_,#(>|";
  if (beginnings_of_replies.find(bytes.front()) == std::string_view::npos) {
    return "the answer is not TLS; correct the node's address";
  }
  return "it answers without TLS; write redis:// for this port, or name the port that has TLS";
}

}  // namespace redlock::tls
