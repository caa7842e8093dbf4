-- SPDX-License-Identifier: MIT
-- Takes a waiter out of a line (see line.lua). If it was its turn and the lock is free, the next
-- one has it.
--   KEYS  1 lock   2 line   3 waiters
--   ARGV  1 waiter
-- Replies 0: nothing is owed to a client that leaves, so an error is of no use to it.
if redis.pcall('EXISTS', KEYS[2]) == 1 then
  pcall(function()
    open_line(KEYS[1], KEYS[2], KEYS[3]).leave(ARGV[1])
  end)
end
return 0
