-- SPDX-License-Identifier: MIT
-- Gives a lock back and takes it for the next caller of the same client, in one step: the scripts
-- release and acquire, which stand before it as functions, one behind the other. Nobody comes
-- between them, so a waiter who is the first one anyway needs neither a turn nor a message.
--   KEYS  1 to 3 those of release   4 on those of acquire
--   ARGV  1 and 2 those of release   3 to 13 those of acquire, up to 8 if it stands in no line
-- Replies {what release replies for its lock, what acquire replies}. What is wrong with one of them
-- does not fail the other, but for a node that lets nothing be deleted: then neither is done.
-- No flags for Redis 7: at maxmemory the lock is deleted, and as much may be written behind that.
local lock, line, waiters, owner, heir = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[9]
local front = heir and redis.pcall('ZRANGE', line, '0', '0')
local passed = heir and front[1] == heir and redis.pcall('HEXISTS', lock, owner) == 1

local released
if passed then
  redis.call('DEL', lock)
  released = 1
else
  released = release({lock, line, waiters}, {owner, ARGV[2]})
  released = released.err and released or released[1]
end

local what = {unpack(ARGV, 3)}
what[12] = passed and #what >= 10
local done, reply = pcall(acquire, {unpack(KEYS, 4)}, what)
if not done then -- a table, or its text, or, before Redis 7, that text behind where it was raised
  local text = type(reply) == 'table' and reply.err or reply
  local raised = string.find(text, 'user_script:', 1, true)
  reply = redis.error_reply((raised and 'ERR Error running script: ' or '') .. text)
end
if passed and reply[1] ~= 1 then -- it is free after all: as after any release
  pcall(function()
    open_line(lock, line, waiters).freed(ARGV[2] == '1')
  end)
end
return {released, reply}
