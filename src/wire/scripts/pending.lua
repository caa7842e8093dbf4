-- SPDX-License-Identifier: MIT
-- Marks a node that has no marker as pending, unless it is already: with a random id that is lost
-- with the rest of the node's data. A client waits a quarantine from when the node forgot; if the
-- id is another than it has seen, the node has forgotten once more since.
--   KEYS  1 marker (hash)   2 notes (hash)
--   ARGV  1 the id, if there is none   2 how long notes are kept, in ms
-- Replies the id, or the fields and values of the marker if there is one.
local marker, notes = KEYS[1], KEYS[2]
local fields = redis.call('HGETALL', marker)
if #fields > 0 then
  return fields
end
-- First, too: a user who may not set its end writes no note.
redis.call('PEXPIRE', notes, ARGV[2])
local id = redis.call('HGET', notes, 'pending')
if not id then
  id = ARGV[1]
  redis.call('HSET', notes, 'pending', id)
  redis.call('PEXPIRE', notes, ARGV[2])
end
return id
