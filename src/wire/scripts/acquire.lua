-- SPDX-License-Identifier: MIT
-- Takes the lock for an owner unless another owner has it. One node, one lock, atomically.
--   KEYS  1 lock (hash owner -> count)   2 fence (counter)   3 forced (there if this owner was
--         forced out, see force.lua)   4 line and 5 waiters (see line.lua)   6 marker and 7 notes
--         (may be left out)
--   ARGV  1 owner   2 lease in ms   3 floor (a new token is at least this; decimal, 1 to 2^52)
--         4 holder: kept in the lock's field @ for people to read (may be empty)
--         5 membership: =SET:EPOCH, the marker must name these; - neither marker nor notes may be
--         there; empty: neither is looked at
--         6 order: empty, takes the lock out of turn; 0, takes it only if nobody waits; w or p,
--         waits, and is woken by messages or polls
--         of w and p   7 waiter   8 for how many us its call has waited   9 the length of its turns
--         in ms   10 for how many us the next call of its client has waited: from the grant on that
--         call has the place in the line (empty: there is none)
--         11 1 if the call of this waiter is not the one that asked before (or left out)
--         12 true if the lock passes to it, the first in line, whatever the turn is; only pass.lua
--         sets it
-- Replies {1, token} granted; {1, token, place} the same, and so many waiters are before the next
-- call; {0, ms} or {0, ms, place} another owner's, or free and kept for another waiter for so long
-- (-1: it never expires), and how many waiters are before this one; {2} a key of another type
-- stands there; {3} this owner was forced out; {4} this owner's already, and lasts at least one
-- lease from now. Error replies leave no lock behind. A node whose marker is gone has forgotten its
-- locks, and one of another set is none of this client's nodes: they grant none.
local call = redis.call
local lock, fence, forced, line, waiters, marker, notes = unpack(KEYS)
local owner, lease, floor, holder, membership, order = unpack(ARGV)
local waiter, waited, turn, next_waited, anew, passed = unpack(ARGV, 7, 12)
local limit = 9007199254740992 -- 2^53: Lua numbers are doubles, exact below it

if marker and membership == '-' then
  if call('EXISTS', marker, notes) > 0 then
    return redis.error_reply('HASMARKER redlock: it has a marker or soon will; use Quarantine::on')
  end
elseif marker and membership and membership ~= '' then
  local named = call('HMGET', marker, 'set', 'epoch')
  if not named[1] then
    return redis.error_reply('NOMARKER redlock: this node has no marker: it is new or was wiped')
  elseif '=' .. named[1] .. ':' .. (named[2] or '') ~= membership then
    return redis.error_reply('OTHERSET redlock: the marker of this node names another set, or ' ..
      'later members of it, by now')
  end
end
local waits = order == 'w' or order == 'p'
local next_call = waits and next_waited ~= ''
-- One call for three keys, as there is none of them as a rule; the line, named twice, counts twice.
local there = call('EXISTS', lock, forced, line, line)
local left = there == 0 and -2 or call('PTTL', lock) -- in ms; -1: it never expires, -2: it is free
if left ~= -2 then
  local ours = redis.pcall('HEXISTS', lock, owner)
  if type(ours) == 'table' then
    local kind = call('TYPE', lock).ok
    return kind == 'hash' and redis.error_reply(ours.err .. ' (HEXISTS)') or {2}
  elseif ours == 0 then
    if waits then
      local here = open_line(lock, line, waiters)
      local known, place = pcall(function()
        here.enter(here.clock(), waiter, order, waited, turn, holder, anew)
        return here.place_of(waiter)
      end)
      return {0, left, known and place or nil}
    end
    return {0, left}
  end
  if left <= tonumber(lease) then -- also -1
    call('PEXPIRE', lock, lease)
  end
  return {4}
elseif there % 2 == 1 then
  return {3} -- a healing, or a late message of it
end
local waited_for = there >= 2
local here = (waited_for or next_call) and open_line(lock, line, waiters)
if waited_for and order ~= '' and not passed then
  local known, kept, place = pcall(function()
    local ms = here.kept_for_another(waits and waiter, order, waited, turn, holder, anew)
    return ms, ms and waits and here.place_of(waiter)
  end)
  if known and kept then
    return {0, kept, place or nil}
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
-- Not before: after a failure the waiter keeps its place. Any grant ends the turn: a waiter that
-- had it and did not use it keeps its place all the same.
if not here then
  return {1, token}
end
local known, place = pcall(function()
  if waited_for then
    here.end_turn()
  end
  if next_call then
    here.enter(here.clock(), waiter, order, next_waited, turn, holder, true)
    return here.place_of(waiter)
  elseif waits then
    here.remove(waiter)
  end
end)
return {1, token, known and place or nil}
