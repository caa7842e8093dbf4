-- SPDX-License-Identifier: MIT
-- Gives a node its marker, unless it has one: somebody's word that it has forgotten nothing. For a
-- node that was a replica the marker also names the promotion for which that is said. A
-- client that has waited until old leases are over says it only if its note is still there.
--   KEYS  1 marker (hash)   2 notes (hash)
--   ARGV  1 id   2 layout   3 number of nodes   4 max_lease in ms   5 promotion (or empty,
--         or none)   6 client whose note must be there (or none: an operator's word)
-- Replies 'written', 'anew' if the note is missing, or the fields and values of the marker that is
-- there.
local marker, notes, promotion, client = KEYS[1], KEYS[2], ARGV[5] or '', ARGV[6]
local is_new = redis.call('EXISTS', marker) == 0
if is_new and client and redis.call('HEXISTS', notes, client) == 0 then
  redis.call('HSET', notes, client, '1')
  return 'anew'
end
if is_new then
  redis.call('HSET', marker, 'id', ARGV[1], 'layout', ARGV[2], 'nodes', ARGV[3], 'max_lease_ms',
    ARGV[4])
  redis.call('DEL', notes)
end
if promotion ~= '' then
  redis.call('HSET', marker, 'vouched', promotion)
end
return is_new and 'written' or redis.call('HGETALL', marker)
