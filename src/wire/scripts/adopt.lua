-- SPDX-License-Identifier: MIT
-- Gives a node its marker, or changes it, if it is now as the caller saw it: somebody's word that
-- the node has forgotten nothing. A client that has waited until old leases are over says it only
-- if the node is still pending as it was then (see pending.lua). For a node that was a replica the
-- marker also names the promotion for which that is said.
--   KEYS  1 marker (hash)   2 notes (hash)
--         of a change of the members   3 the change that has the node's promise (string): the node
--         executes nothing that another one tells it
--   ARGV  1 what is there now: SET EPOCH; SET alone while the set is being formed; or empty
--         2 set; forming: all members have to say so before one of them is of the set; former: the
--         marker is removed; or empty: the node only says whether it would take the marker, and
--         promises
--         3 id of this member   4 layout   5 number of nodes   6 max_lease in ms   7 set   8 epoch
--         9 members: ID=ADDRESS, with blanks between them
--         10 promotion (or empty, or none)
--         11 for how long the number of members stays after it was changed, in ms: until what was
--         confirmed before is over
--         12 with KEYS[3] the id of this change; otherwise the id of the pending node (or none: an
--         operator's word)
--         of a pending node   13 how long notes are kept, in ms   14 the id that it gets if it has
--         lost its own: always a new one, or that it lost it once more would go unseen
-- Replies 'written', 'ready' if it would take the marker, 'resized MS' if the number of members may
-- be changed in so many ms, 'another' if another change has its promise, the id of the pending node
-- if it is another (perhaps a new one), or the fields and values of the marker that is there.
local marker, notes, change = KEYS[1], KEYS[2], KEYS[3]
local seen, field, id, layout, nodes, max_lease, set, epoch, members = unpack(ARGV)
local promotion = ARGV[10] or ''
local stays, whose, kept, next_id = unpack(ARGV, 11, 14)
local pending = not change and whose

local function there(name)
  return redis.call('HGET', marker, name) or ''
end
local now = ''
if redis.call('EXISTS', marker) == 1 then
  now = there('set') == '' and there('forming') or there('set') .. ' ' .. there('epoch')
elseif pending then
  local waits = redis.call('HGET', notes, 'pending')
  if not waits then
    redis.call('HSET', notes, 'pending', next_id)
    local ends = redis.pcall('PEXPIRE', notes, kept)
    if type(ends) == 'table' then -- as in pending.lua
      redis.call('DEL', notes)
      return redis.error_reply(ends.err .. ' (PEXPIRE)')
    end
  end
  if waits ~= pending then
    return waits or next_id
  end
end
if change and field ~= '' and redis.call('GET', change) ~= whose then
  return 'another'
end
local written = now == seen
if written and field == 'former' then
  redis.call('DEL', marker)
elseif written then
  if now ~= '' and there('set') == set and there('nodes') ~= nodes then
    local time = redis.call('TIME')
    local ms = time[1] * 1000 + math.floor(time[2] / 1000)
    -- Where the clock was set back meanwhile, the time begins anew.
    local resized = math.min(tonumber(there('resized')) or 0, ms)
    local left = resized + stays - ms
    if left > 0 or field ~= '' then
      redis.call('HSET', marker, 'resized', string.format('%.0f', left > 0 and resized or ms))
    end
    if left > 0 then
      return string.format('resized %.0f', left)
    end
  end
  if field == '' then
    redis.call('SET', change, whose) -- if it cannot write, it is not ready
    return 'ready'
  end
  redis.call('HSET', marker, 'id', id, 'layout', layout, 'nodes', nodes, 'max_lease_ms', max_lease,
    'epoch', epoch, 'members', members, field, set)
  if field == 'set' then
    redis.call('HDEL', marker, 'forming')
  end
  redis.call('DEL', notes)
end
local same = there('layout') == layout and there('nodes') == nodes
  and there('max_lease_ms') == max_lease and there('set') == set
if field ~= '' and promotion ~= '' and same then
  redis.call('HSET', marker, 'vouched', promotion)
end
return written and 'written' or redis.call('HGETALL', marker)
