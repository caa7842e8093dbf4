// SPDX-License-Identifier: MIT
#include "c/client.hpp"

#include <memory>
#include <utility>

#include <redlock/redlock.h>
#include <redlock/version.hpp>

#include "c/last_error.hpp"
#include "c/options.hpp"
#include "c/stop.hpp"

using redlock::c::fail;
using redlock::c::guarded;
using redlock::c::refuse;

const char* redlock_version(void) {
  return REDLOCK_VERSION;
}

redlock_status redlock_client_create(const redlock_client_options* options,
                                     redlock_client** client) {
  return guarded([=] {
    if (client == nullptr) return refuse("client is NULL: give the address of a pointer");
    *client = nullptr;
    auto known = redlock::c::to_options(options);
    if (!known) return fail(known.error());
    auto created = redlock::Client::create(std::move(*known));
    if (!created) return fail(created.error());
    *client = std::make_unique<redlock_client>(redlock_client{std::move(*created)}).release();
    return REDLOCK_OK;
  });
}

redlock_status redlock_client_close(redlock_client* client, int64_t at_most_ms,
                                    redlock_close_report* report) {
  return guarded([=] {
    if (client == nullptr) return refuse("client is NULL");
    const auto closed = client->client.close(redlock::c::to_duration(at_most_ms));
    if (!closed) return fail(closed.error());
    if (report != nullptr) {
      *report = {closed->released, closed->already_gone, closed->unconfirmed};
    }
    return REDLOCK_OK;
  });
}

void redlock_client_destroy(redlock_client* client) {
  const std::unique_ptr<redlock_client> owned(client);
}

redlock_status redlock_stop_create(redlock_stop** stop) {
  return guarded([=] {
    if (stop == nullptr) return refuse("stop is NULL: give the address of a pointer");
    *stop = nullptr;
    *stop = std::make_unique<redlock_stop>().release();
    return REDLOCK_OK;
  });
}

void redlock_stop_request(redlock_stop* stop) {
  if (stop != nullptr) stop->source.request_stop();
}

void redlock_stop_destroy(redlock_stop* stop) {
  const std::unique_ptr<redlock_stop> owned(stop);
}
