-- SPDX-License-Identifier: MIT
-- Gives a node its marker, unless it has one: somebody's word that it has forgotten nothing. For a
-- node that was a replica the marker also names the run of the server for which that is said.
--   KEYS  1 marker (hash)
--   ARGV  1 id   2 layout   3 number of nodes   4 max_lease in ms   5 run id (may be empty)
-- Replies 'written', or the fields and values of the marker that is there.
local marker = KEYS[1]
if redis.call('EXISTS', marker) == 0 then
  redis.call('HSET', marker, 'id', ARGV[1], 'layout', ARGV[2], 'nodes', ARGV[3], 'max_lease_ms',
    ARGV[4], 'vouched', ARGV[5])
  return 'written'
end
if ARGV[5] ~= '' then
  redis.call('HSET', marker, 'vouched', ARGV[5])
end
return redis.call('HGETALL', marker)
