-- SPDX-License-Identifier: MIT
-- Deletes locks that are still their owners', and gives the turn to the next waiter. Any number of
-- locks in one call, each for itself; at the first that the user may not look at or delete it ends,
-- with an error for all.
--   KEYS  for each lock: lock, line, waiters (see line.lua)
--   ARGV  for each lock: owner, which waiters are told: 1 the first alone, other nodes tell the
--         second; 2 both
--         of one lock that is alone in its call, if the client that gives it back goes on waiting:
--         3 waiter   4 w or p   5 for how many us its call has waited   6 the length of its turns
--         in ms   7 a text about that client, for people   8 1 if that is another call than before
--         (or left out)
-- Replies an array with, for each lock: 1 released, 0 not held: free, another owner's, or a key of
-- another type.
local replies = {}
for i = 1, #KEYS / 3 do
  local lock, line, waiters = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local owner, told = ARGV[2 * i - 1], ARGV[2 * i]
  local had = redis.pcall('HEXISTS', lock, owner)
  if type(had) == 'table' and redis.call('TYPE', lock).ok == 'hash' then
    return redis.error_reply(had.err .. ' (HEXISTS)') -- it may not look
  end
  had = had == 1
  if had then
    redis.call('DEL', lock)
  end
  local keeps_place = #KEYS == 3 and #ARGV > 2
  if keeps_place or had and redis.pcall('EXISTS', line) == 1 then
    pcall(function()
      local here = open_line(lock, line, waiters)
      if keeps_place then
        pcall(here.enter, here.clock(), unpack(ARGV, 3))
      end
      if had then
        here.freed(told == '1')
      end
    end)
  end
  replies[i] = had and 1 or 0
end
return replies
