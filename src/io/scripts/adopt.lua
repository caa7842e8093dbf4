-- SPDX-License-Identifier: MIT
-- Gives a node its marker, unless it has one: somebody's word that it has forgotten nothing. For a
-- node that was a replica the marker also names the run of the server for which that is said.
--   KEYS  1 marker (hash)
--   ARGV  1 id   2 layout   3 number of nodes   4 max_lease in ms   5 run id (or empty, or none)
-- Replies 'written', or the fields and values of the marker that is there.
local marker, run = KEYS[1], ARGV[5] or ''
local is_new = redis.call('EXISTS', marker) == 0
if is_new then
  redis.call('HSET', marker, 'id', ARGV[1], 'layout', ARGV[2], 'nodes', ARGV[3], 'max_lease_ms',
    ARGV[4])
end
if run ~= '' then
  redis.call('HSET', marker, 'vouched', run)
end
return is_new and 'written' or redis.call('HGETALL', marker)
