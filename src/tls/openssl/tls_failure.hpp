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

/// This side's part in the failure.
struct ClientPart {
  bool asked_for_certificate = false;
  bool has_certificate = false;
  bool open = false;  ///< the handshake was complete
};

/// For a certificate that the verification refuses. `name` is the name that it must have.
[[nodiscard]] std::string describe_refusal(X509_STORE_CTX& verification, const std::string& name);

/// For the oldest error in OpenSSL's queue.
[[nodiscard]] TlsFailure describe_error(const ClientPart& client);

/// For a peer whose very first byte is not TLS.
[[nodiscard]] std::string describe_plaintext(std::string_view bytes);

}  // namespace redlock::tls
