-- SPDX-License-Identifier: MIT
-- Takes a waiter out of a line (see line.lua). If it was its turn and the lock is free, the next
-- one has it.
--   KEYS  1 lock   2 line   3 waiters
--   ARGV  1 waiter
--         of a client that has another call, which stands there from now on (if there is a line):
--         2 w or p   3 for how many us it has waited   4 the length of its turns in ms   5 a text
--         about it, for people
-- Replies 0: nothing is owed to a client that leaves, so an error is of no use to it.
if redis.pcall('EXISTS', KEYS[2]) == 1 then
  pcall(function()
    open_line(KEYS[1], KEYS[2], KEYS[3]).leave(unpack(ARGV))
  end)
end
return 0
