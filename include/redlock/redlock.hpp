// SPDX-License-Identifier: MIT
// Includes everything a program needs. Read client.hpp first, then lock.hpp and lease.hpp.
#pragma once

#include <redlock/cpp20.hpp>

#include <redlock/callback.hpp>
#include <redlock/client.hpp>
#include <redlock/clock.hpp>
#include <redlock/continuation.hpp>
#include <redlock/error.hpp>
#include <redlock/fence_guard.hpp>
#include <redlock/fenced_redis.hpp>
#include <redlock/lease.hpp>
#include <redlock/lock.hpp>
#include <redlock/metrics.hpp>
#include <redlock/observer.hpp>
#include <redlock/operation.hpp>
#include <redlock/options.hpp>
#include <redlock/owner.hpp>
#include <redlock/version.hpp>
