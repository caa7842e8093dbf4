-- SPDX-License-Identifier: MIT
-- Gives a node its marker, unless it has one: somebody's word that it has forgotten nothing. For a
-- node that was a replica the marker also names the promotion for which that is said. A
-- client that has waited until old leases are over says it only if the node is still pending as it
-- was then (see pending.lua). An operator's word also names the set in a marker that agrees but
-- names none.
--   KEYS  1 marker (hash)   2 notes (hash)
--   ARGV  1 id   2 layout   3 number of nodes   4 max_lease in ms   5 set (or empty)
--         6 promotion (or empty, or none)   7 id of the pending node (or none: an operator's word)
--         8 how long notes are kept, in ms; with 7
-- Replies 'written', the id of the pending node if it is another (perhaps a new one), or the fields
-- and values of the marker that is there.
local marker, notes, set = KEYS[1], KEYS[2], ARGV[5]
local promotion, pending = ARGV[6] or '', ARGV[7]
local is_new = redis.call('EXISTS', marker) == 0
if is_new and pending then
  local id = redis.call('HGET', notes, 'pending')
  if not id then
    redis.call('HSET', notes, 'pending', ARGV[1])
    redis.call('PEXPIRE', notes, ARGV[8])
  end
  if id ~= pending then
    return id or ARGV[1]
  end
end
if is_new then
  redis.call('HSET', marker, 'id', ARGV[1], 'layout', ARGV[2], 'nodes', ARGV[3], 'max_lease_ms',
    ARGV[4])
  if set ~= '' then
    redis.call('HSET', marker, 'set', set)
  end
  redis.call('DEL', notes)
end
local function there(field)
  return redis.call('HGET', marker, field)
end
local same = there('layout') == ARGV[2] and there('nodes') == ARGV[3]
  and there('max_lease_ms') == ARGV[4]
if same and not pending and set ~= '' and not there('set') then
  redis.call('HSET', marker, 'set', set)
end
if promotion ~= '' and same and (there('set') or '') == set then
  redis.call('HSET', marker, 'vouched', promotion)
end
return is_new and 'written' or redis.call('HGETALL', marker)
