// SPDX-License-Identifier: MIT
// The settings of a client as OpenSSL keeps them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tls/openssl/handles.hpp"
#include "tls/tls_context.hpp"

namespace redlock::tls {

class OpensslContext final : public TlsContext {
 public:
  explicit OpensslContext(ContextHandle context) : context_(std::move(context)) {}
  [[nodiscard]] std::unique_ptr<TlsPeer> peer(std::string name) override;

 private:
  ContextHandle context_;
};

// What the files give to the context; or a sentence.

[[nodiscard]] std::optional<std::string> trust(SSL_CTX& context, const std::string& file_or_folder);
[[nodiscard]] std::optional<std::string> trust_system(SSL_CTX& context);
[[nodiscard]] std::optional<std::string> show(SSL_CTX& context, const std::string& certificate,
                                              const std::string& key);

}  // namespace redlock::tls
