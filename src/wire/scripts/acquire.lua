-- SPDX-License-Identifier: MIT
-- Takes the lock for an owner unless somebody else has it. One node, one lock, atomically.
--   KEYS  1 lock (hash owner -> count)   2 fence (counter)   3 marker (may be left out)
--   ARGV  1 owner   2 lease in ms   3 floor (a new token is at least this; decimal, 1 to 2^52)
--         4 order: "WAITER TICKET w" or p for one who waits (see queue.lua); 0: takes the lock only
--         if nobody waits; empty or left out: takes it out of turn
--         5 who takes it: kept in the lock's field @ for people to read (may be empty or left out)
--         6 the set that the marker must name (empty: it must name none; left out by a client
--         without quarantine: neither marker nor notes, the key beside it, may be there)
--         7 whether it is this waiter's turn, of which no client says anything (see pass.lua)
-- Replies {1, token} granted, {0, ms} or {0, ms, place} somebody else's, or free and kept for
-- somebody else for so long (-1: it never expires) and how many waiters are before this one, {2} a
-- key of another type stands there, {3} this owner was forced out (the key beside the lock, see
-- force.lua), {4} this owner's already, and lasts one lease from now. Error replies leave no lock
-- behind. A node whose marker is gone has forgotten its locks, and one of another set is none of
-- this client's nodes: they grant none.
local call = redis.call
local lock, fence, marker = unpack(KEYS)
local owner, lease, floor, order, holder, set, passed = unpack(ARGV)
order = order or ''
local limit = 9007199254740992 -- 2^53: Lua numbers are doubles, exact below it

if marker and not set then
  if call('EXISTS', marker, marker .. ':notes') > 0 then
    return redis.error_reply('HASMARKER redlock: it has a marker or soon will; use Quarantine::on')
  end
elseif marker then
  local named = call('HGET', marker, 'set')
  if not named and call('EXISTS', marker) == 0 then
    return redis.error_reply('NOMARKER redlock: this node has no marker: it is new or was wiped')
  elseif (named or '') ~= set then
    return redis.error_reply('OTHERSET redlock: the marker of this node names another set by now')
  end
end
-- One call for three keys, as there is none of them as a rule; one counts as often as it is named.
-- An error is about the queue, or told again by the next one.
local queue, forced = lock .. ':queue', lock .. ':forced'
local there = redis.pcall('EXISTS', lock, forced, forced, queue, queue, queue, queue)
if type(there) == 'table' then
  there = call('EXISTS', lock, forced, forced)
end
if there % 2 == 1 then
  local ours = redis.pcall('HEXISTS', lock, owner)
  if type(ours) == 'table' then
    local kind = call('TYPE', lock).ok
    return kind == 'hash' and redis.error_reply(ours.err .. ' (HEXISTS)') or {2}
  elseif ours == 0 then
    local left = call('PTTL', lock)
    if #order > 1 and pcall(open_queue(), lock, order, holder) then
      local place = redis.pcall('ZRANK', queue, string.match(order, '^%S+'))
      return {0, left, type(place) == 'number' and place or nil}
    end
    return {0, left}
  end
  if call('PTTL', lock) <= tonumber(lease) then -- also -1, no expiry
    call('PEXPIRE', lock, lease)
  end
  return {4}
elseif there % 4 >= 2 and call('HEXISTS', forced, owner) == 1 then
  return {3} -- a healing, or a late message of it
end
local queued = there >= 4
local waiter = queued and string.match(order, '^(%x+:%d+) ')
if queued and order ~= '' and not passed then
  local _, _, kept_for_another = open_queue()
  local known, kept, place = pcall(kept_for_another, lock, order, waiter, holder)
  if known and kept then
    return {0, kept, place}
  end
end

if not (tonumber(floor) <= limit / 2) then -- no client sends it: tokens must last
  return redis.error_reply('ERR redlock: the floor is beyond 2^52')
end
-- The fence before the lock: if it has the wrong type this fails with nothing written, and a
-- script does not roll back. Nearly always it is below the floor, a clock: one call then raises it.
-- It is given the text itself: a Lua number would be rounded on its way out.
local token, before = tonumber(floor), call('SET', fence, floor, 'GET')
if before and (tonumber(before) or limit) >= token then
  call('SET', fence, before)
  token = call('INCR', fence) -- fails if that is no number, or the largest one
  if token >= limit then
    call('SET', fence, before)
    return redis.error_reply('ERR redlock: the fence has reached 2^53, the end of tokens')
  end
end
if holder and holder ~= '' then
  call('HSET', lock, owner, '1', '@', holder)
else
  call('HSET', lock, owner, '1')
end
local expiry = redis.pcall('PEXPIRE', lock, lease)
if type(expiry) == 'table' then -- refused (by an ACL, say): a lock without an end must not stay
  call('DEL', lock)
  return redis.error_reply(expiry.err .. ' (PEXPIRE)')
end
-- Not before: after a failure the waiter keeps its place. Any grant ends the turn: who had it and
-- did not use it keeps its place all the same.
if queued and waiter then
  redis.pcall('ZREM', queue, waiter)
  redis.pcall('HDEL', lock .. ':waiters', waiter, '@' .. waiter, 'turn', 'until')
elseif queued then
  redis.pcall('HDEL', lock .. ':waiters', 'turn', 'until')
end
return {1, token}
