-- SPDX-License-Identifier: MIT
-- Leaves this client's note on a node that has no marker. A client waits a quarantine from when the
-- node forgot; if its note is gone, the node has forgotten once more since.
--   KEYS  1 marker (hash)   2 notes (hash)
--   ARGV  1 client   2 how long notes are kept, in ms
-- Replies 'noted' if the note was there, 'anew' if it was not, or the fields and values of the
-- marker if there is one.
local marker, notes = KEYS[1], KEYS[2]
local fields = redis.call('HGETALL', marker)
if #fields > 0 then
  return fields
end
local anew = redis.call('HSET', notes, ARGV[1], '1') == 1
redis.call('PEXPIRE', notes, ARGV[2])
return anew and 'anew' or 'noted'
