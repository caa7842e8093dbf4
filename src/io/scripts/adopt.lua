-- SPDX-License-Identifier: MIT
-- Gives a node its marker, unless it has one: the operator's word that it has forgotten nothing.
--   KEYS  1 marker (hash)   ARGV  1 id   2 layout   3 number of nodes   4 max_lease in ms
-- Replies 'written', or the fields and values of the marker that is there.
local marker = KEYS[1]
if redis.call('EXISTS', marker) == 1 then
  return redis.call('HGETALL', marker)
end
redis.call('HSET', marker, 'id', ARGV[1], 'layout', ARGV[2], 'nodes', ARGV[3], 'max_lease_ms',
  ARGV[4])
return 'written'
