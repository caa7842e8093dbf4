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
local known = redis.call('HGET', notes, 'pending')
if not known then
  redis.call('HSET', notes, 'pending', ARGV[1])
end
local ends = redis.pcall('PEXPIRE', notes, ARGV[2])
if type(ends) == 'table' then -- refused (by an ACL, say): a note without an end must not stay
  if not known then
    redis.call('DEL', notes)
  end
  return redis.error_reply(ends.err .. ' (PEXPIRE)')
end
return known or ARGV[1]
