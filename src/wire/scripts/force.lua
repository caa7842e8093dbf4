-- SPDX-License-Identifier: MIT
-- Takes the lock away from one owner, and keeps that owner from coming back: no acquire of it,
-- late or healing, is granted here any more. Another owner's lock is left alone. The next waiter
-- may have the lock, see line.lua.
--   KEYS  1 lock   2 fence   3 forced: a key of this owner, which acquire and hold turn away while
--         it is there   4 line   5 waiters   6 marker
--   ARGV  1 owner  2 for how long it is turned away, in ms   3 the longest lease for which that is
--         enough, in ms. Where the marker names a longer one, which the caller has not read, the
--         time is longer by as much.
-- Replies {1} it had the lock, {0} it had not; it is turned away from now on in both cases.
local lock, fence, forced, line, waiters, marker = unpack(KEYS)
local owner, ms, enough_for = unpack(ARGV)
local limit = 9007199254740992 -- 2^53: Lua numbers are doubles, exact below it

local leases = redis.pcall('HGET', marker, 'max_lease_ms')
for lease in string.gmatch(type(leases) == 'string' and leases or '', '%d+') do
  if tonumber(lease) > tonumber(enough_for) and #lease < 12 then -- no longer than years
    ms = string.format('%.0f', math.ceil(ms * lease / enough_for))
    enough_for = lease
  end
end
if redis.call('PTTL', forced) < tonumber(ms) then
  -- At maxmemory Redis before 7 lets only those commands grow memory that follow a write (see
  -- hold.lua).
  redis.call('DEL', forced)
  redis.call('SET', forced, '', 'PX', ms)
end

local kind = redis.call('TYPE', lock).ok
if kind ~= 'hash' or redis.call('HEXISTS', lock, owner) == 0 then
  return {0}
end
redis.call('DEL', lock)
-- The fence rises with the change of hands. One that is damaged, or at its end, is of no use to
-- anybody, and must not keep the lock where it is.
local before = redis.pcall('GET', fence)
local token = redis.pcall('INCR', fence)
if type(token) == 'number' and token >= limit and type(before) == 'string' then
  redis.call('SET', fence, before)
end
if redis.pcall('EXISTS', line) == 1 then
  pcall(function()
    open_line(lock, line, waiters).freed(false)
  end)
end
return {1}
