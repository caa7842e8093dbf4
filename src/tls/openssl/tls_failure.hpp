// SPDX-License-Identifier: MIT
// Why a connection cannot be trusted, in words that say what to do.
#pragma once

#include <string>
#include <string_view>

#include <redlock/error.hpp>

#include "tls/openssl/handles.hpp"

namespace redlock::tls {

struct TlsFailure {
  std::string problem;
  Cause cause = Cause::tls;
};

/// What this side had to do with the failure.
struct ClientPart {
  bool asked_for_certificate = false;
  bool has_certificate = false;
  bool open = false;  ///< the handshake was complete
};

/// Of a certificate that the verification refuses. `name` is what it must have.
[[nodiscard]] std::string describe_refusal(X509_STORE_CTX& verification, const std::string& name);

/// Of the oldest error in OpenSSL's queue.
[[nodiscard]] TlsFailure describe_error(const ClientPart& client);

/// Of a peer whose very first byte is none of TLS.
[[nodiscard]] std::string describe_plaintext(std::string_view bytes);

}  // namespace redlock::tls
