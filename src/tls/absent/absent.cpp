// SPDX-License-Identifier: MIT
// For a build without TLS (REDLOCK_TLS=OFF).
#include "tls/tls_context.hpp"

namespace redlock::tls {

tl::expected<std::shared_ptr<TlsContext>, std::string> load(const TlsOptions& /*options*/) {
  return tl::unexpected(std::string(
      "this redlock was built without TLS (rediss://): build it with REDLOCK_TLS=ON, or "
      "use redis:// through a trusted network or a tunnel"));
}

}  // namespace redlock::tls
