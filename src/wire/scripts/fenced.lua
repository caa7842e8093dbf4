-- SPDX-License-Identifier: MIT
-- Begins the scripts of include/redlock/fenced_redis.hpp; the caller's Lua stands behind it, and
-- behind that what makes the reply. Turns a token away that is below the stamp, otherwise stamps.
--   KEYS  the caller's, then the stamp    ARGV  the caller's, then the token
-- Replies {stamp, nil} if the token is too old, otherwise {0, what the caller's Lua returns}.
-- The two are removed, so that the caller's Lua sees only its own.
local stamp_key, token_text = table.remove(KEYS), table.remove(ARGV)

local function number_of(text, what)
  local number = string.match(text, '^%d+$') and tonumber(text)
  -- 2^53: Lua numbers are doubles, exact below it
  if not number or number == 0 or number >= 9007199254740992 then
    return nil, redis.error_reply('ERR redlock: ' .. what .. ' is not a token')
  end
  return number
end

local token, bad_token = number_of(token_text, 'the last argument')
if bad_token then
  return bad_token
end
local seen_text = redis.call('GET', stamp_key)
local seen = 0
if seen_text then
  local bad_stamp
  seen, bad_stamp = number_of(seen_text, 'the stamp in ' .. stamp_key)
  if bad_stamp then
    return bad_stamp
  end
end
if token < seen then
  return {seen, false}
end
-- Also a stamp that is there already: a replica, which may have the stamp and not yet the data,
-- refuses to write it, and so refuses to be read.
redis.call('SET', stamp_key, token_text)
