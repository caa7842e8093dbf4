// SPDX-License-Identifier: MIT
// What the tests of src/net share, whatever they run of it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <redlock/clock.hpp>

#include "cluster/fleet.hpp"
#include "cluster/free_port.hpp"
#include "cluster/sockets.hpp"
#include "engine/messages.hpp"
#include "net_server_kind.hpp"
#include "support/processes.hpp"
#include "support/proxy.hpp"
#include "support/stub_server.hpp"
#include "support/text.hpp"
#include "tls/tls_context.hpp"
#include "wire/link.hpp"

namespace redlock::net {

using namespace redlock::wire;
using namespace redlock::testing;
using namespace std::chrono_literals;
namespace cluster = redlock::cluster;
namespace engine = redlock::engine;
namespace tls = redlock::tls;
using cluster::Data;
using cluster::Fleet;
using cluster::FleetOptions;
using cluster::listen_on_loopback;
using cluster::Received;
using cluster::UniqueFd;
using engine::Delivery;
using engine::Form;
using engine::Granted;
using redlock::BootClock;
using redlock::Cause;
using std::chrono::milliseconds;

}  // namespace redlock::net
