-- SPDX-License-Identifier: MIT
-- Deletes the lock if it is this owner's.
--   KEYS  1 lock      ARGV  1 owner
-- Replies {1} released, {0} not held: free, another owner's, or a key of another type.
local lock, owner = KEYS[1], ARGV[1]
if redis.call('TYPE', lock).ok == 'hash' and redis.call('HEXISTS', lock, owner) == 1 then
  redis.call('DEL', lock)
  return {1}
end
return {0}
