-- SPDX-License-Identifier: MIT
-- Gives a lock back and takes it for the next caller of the same client, in one step: the scripts
-- release and acquire, which stand before it as functions, one behind the other. Nobody comes
-- between them, so a waiter who is the first one anyway needs neither a turn nor a message.
--   KEYS  1 lock, of the release   2 to 4 those of acquire
--   ARGV  1 and 2 those of release   3 to 8 those of acquire
-- Replies {what release replies for its lock, what acquire replies}. What is wrong with one of them
-- does not fail the other, but for a node that lets nothing be deleted: then neither is done.
-- No flags for Redis 7: at maxmemory the lock is deleted, and as much may be written behind that.
local lock, owner, order = KEYS[1], ARGV[1], ARGV[2]
local heir = string.match(ARGV[6] or '', '^(%x+:%d+) ')
local passed = false
if heir then
  local front = redis.pcall('ZRANGE', lock .. ':queue', '0', '0')
  passed = front[1] == heir and redis.pcall('HEXISTS', lock, owner) == 1
end

local released
if passed then
  redis.call('DEL', lock)
  released = 1
  local entry, waiter = string.match(order, '^!?((%x+:%d+) .+)$')
  if entry and pcall(open_queue(), lock, entry) then
    local place = redis.pcall('ZRANK', lock .. ':queue', waiter)
    released = type(place) == 'number' and 2 + place or released
  end
else
  released = release({lock}, {owner, order})
  released = released.err and released or released[1]
end

local done, reply = pcall(acquire, {KEYS[2], KEYS[3], KEYS[4]},
  {ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], passed})
if not done then -- a table, or its text, or, before Redis 7, that text behind where it was raised
  local text = type(reply) == 'table' and reply.err or reply
  local raised = string.find(text, 'user_script:', 1, true)
  reply = redis.error_reply((raised and 'ERR Error running script: ' or '') .. text)
end
if passed and reply[1] ~= 1 then -- it is free after all: as after any release
  local _, after_release = open_queue()
  pcall(after_release, lock, '', true)
end
return {released, reply}
