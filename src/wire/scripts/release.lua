-- SPDX-License-Identifier: MIT
-- Deletes locks that are still their owners', and lets the next one who waits have them. Any number
-- of locks in one call, each for itself.
--   KEYS  the locks
--   ARGV  for each lock: owner, order (empty; "WAITER" leaves the queue, see queue.lua; "WAITER
--         TICKET w" or p, and who that is for people, stays, or is put into it, before the next one
--         is found. With ! before it: only the first waiter is told; other nodes tell the second)
-- Replies an array with, for each lock: 1 released, 0 not held: free, another owner's, or a key of
-- another type. If a waiter was put into the queue, with so many before it: 2 + so many, or
-- -1 - so many.
local replies = {}
for i, lock in ipairs(KEYS) do
  local owner, order = ARGV[2 * i - 1], ARGV[2 * i]
  local freed = redis.pcall('HEXISTS', lock, owner)
  if type(freed) == 'table' and redis.call('TYPE', lock).ok == 'hash' then
    return redis.error_reply(freed.err .. ' (HEXISTS)') -- it may not look
  end
  freed = freed == 1
  if freed then
    redis.call('DEL', lock)
  end
  local place
  -- With a ticket: it may be the first one to wait.
  if string.find(order, ' ', 1, true)
    or (freed or #order > 1) and redis.pcall('EXISTS', lock .. ':queue') == 1 then
    local _, after_release = open_queue()
    local known
    known, place = pcall(after_release, lock, order, freed)
    place = known and place
  end
  if freed then
    replies[i] = place and 2 + place or 1
  else
    replies[i] = place and -1 - place or 0
  end
end
return replies
