-- SPDX-License-Identifier: MIT
-- Confirms locks of their owners: sets the absolute count, raises the fence to the token, makes the
-- lease last this long from now if it would end earlier. Any number of locks in one call, each for
-- itself: what is wrong with one never fails another.
--   KEYS  for each lock: lock, fence, forced (there if this owner was forced out, see force.lua);
--         behind them the marker (may be left out)
--   ARGV  for each lock: owner, count, token, lease in ms; behind them, with a marker, membership:
--         =SET:EPOCH, which the marker must name if there is one; = alone, none may be there
-- Replies an array with, for each lock: {1, fence} held, {0} free, {-1} another owner's, {-2} a key
-- of another type stands there, {-3} free or another's, because this owner was forced out, or an
-- error. A fence that cannot be raised (wrong type, damaged) is told as 0. Token 0 raises nothing.
-- A lease of former members is not lengthened: later ones may grant the lock when it is over.
local limit = 9007199254740992 -- 2^53: Lua numbers are doubles, exact below it

local function is_there(forced)
  return redis.pcall('EXISTS', forced) == 1
end

-- Redis 7.0 does not say which command the user may not run.
local doing
local function call(command, ...)
  doing = command
  return redis.call(command, ...)
end

local function hold(lock, fence, forced, owner, count, token, lease)
  local kind = call('TYPE', lock).ok
  if kind == 'none' then
    return {is_there(forced) and -3 or 0}
  elseif kind ~= 'hash' then
    return {-2}
  end
  local held = call('HGET', lock, owner)
  if not held then
    return {is_there(forced) and -3 or -1}
  end

  local text = redis.pcall('GET', fence)
  local reached = 0
  if text then -- a table (wrong type) or text
    reached = type(text) == 'string' and string.match(text, '^%d+$') and tonumber(text)
  end
  local usable = reached and reached < limit
  local wanted = tonumber(token)
  local raise = usable and reached < wanted and wanted < limit

  -- At maxmemory Redis before 7 lets only those commands of a script grow memory that follow a
  -- write of the same script. So a write that needs no memory goes first; one that changes nothing
  -- if there is nothing to lengthen.
  local left = call('PTTL', lock)
  if left < tonumber(lease) then -- also -1, no expiry
    call('PEXPIRE', lock, lease)
  elseif raise or held ~= count then
    call('HDEL', lock, '')
  end
  if held ~= count then
    call('HSET', lock, owner, count)
  end
  if raise then
    call('SET', fence, token) -- the text itself: a Lua number would be rounded
    reached = wanted
  end
  return {1, usable and reached or 0}
end

local marker = #KEYS % 3 == 1 and KEYS[#KEYS]
if marker then
  local named = redis.call('HMGET', marker, 'set', 'epoch')
  if named[1] and '=' .. named[1] .. ':' .. (named[2] or '') ~= ARGV[#ARGV] then
    return redis.error_reply('OTHERSET redlock: the marker of this node names other members by now')
  end
end
local replies = {}
for i = 1, #KEYS / 3 do
  local k, a = 3 * i - 2, 4 * i - 3
  local done, reply = pcall(hold, KEYS[k], KEYS[k + 1], KEYS[k + 2], ARGV[a], ARGV[a + 1],
    ARGV[a + 2], ARGV[a + 3])
  if not done then -- a table, or its text, or, before Redis 7, that text behind where it was raised
    local text = type(reply) == 'table' and reply.err or reply
    local raised = string.find(text, 'user_script:', 1, true)
    reply = redis.error_reply((raised and 'ERR Error running script: ' or '') .. text ..
      ' (' .. doing .. ')')
  end
  replies[#replies + 1] = reply
end
return replies
