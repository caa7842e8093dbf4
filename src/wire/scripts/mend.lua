-- SPDX-License-Identifier: MIT
-- Replaces a damaged fence by what the other nodes have: an operator's word. Only while it is what
-- was compared with them, and not when the message is late, because the others go on.
--   KEYS  1 fence
--   ARGV  1 what was found there (empty: no number of up to 20 digits)   2 the new value   3 until
--         when it may be set, in us of this node's clock
-- Replies 1 set; 0 something else is there by now; -1 too late.
local fence, found, value, latest = KEYS[1], unpack(ARGV)
local time = redis.call('TIME')
if time[1] * 1000000 + time[2] > tonumber(latest) then
  return -1
end
local there = redis.pcall('GET', fence)
if type(there) == 'table' or there and (#there > 20 or not string.match(there, '^%d+$')) then
  there = ''
end
if there ~= found then
  return 0
end
redis.call('SET', fence, value)
return 1
