-- SPDX-License-Identifier: MIT
-- Deletes locks that are still their owners'. Any number of locks in one call, each for itself.
--   KEYS  the locks      ARGV  the owner of each
-- Replies an array with, for each lock: 1 released, 0 not held: free, another owner's, or a key of
-- another type.
local replies = {}
for i, lock in ipairs(KEYS) do
  replies[i] = 0
  if redis.call('TYPE', lock).ok == 'hash' and redis.call('HEXISTS', lock, ARGV[i]) == 1 then
    redis.call('DEL', lock)
    replies[i] = 1
  end
end
return replies
