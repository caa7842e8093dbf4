-- SPDX-License-Identifier: MIT
-- The clients that wait for a lock on this node, in order: its line. This text stands in front of
-- the scripts that take locks and give them back; nothing of it runs where nobody waits. A line has
-- two keys, which expire by themselves and are gone soon after the last waiter.
--   LINE     sorted set: waiter -> when its call began to wait (us of this node's clock)
--   WAITERS  hash: waiter -> "ALIVE HOW TURN": until when it counts as alive (ms of this node's
--            clock), w if its client is subscribed here, p if it polls, the length of its turns in
--            ms; @waiter -> a text about it, for people; LOCK -> "WAITER UNTIL": the waiter that
--            this lock is kept for, and until when (ms)
-- A waiter is CLIENT:NUMBER, a client's number of its own line for one name. The channel
-- redlock:wake:CLIENT receives "NUMBER AFTER". 0: the waiter's turn has come; otherwise the waiter
-- before it has its turn for so many ms. A line only adds refusals and messages, so a lock is as
-- safe with a damaged line or without one; that is why its errors (a missing permission, a key of
-- another type, a full node) are caught by the callers, which go on as if nobody waited; a waiter
-- that may not come in keeps others from nothing. Without the right to publish the line stands.
--
-- A waiter says how long its call has waited, and the node subtracts that from its own clock: so
-- calls stand in the order in which they began, to within the difference of their messages' delays,
-- whatever this clock shows. The smallest place that a waiter was given stays, until another call
-- of its client takes it over.
--
-- A call to Redis costs more than all the Lua around it, and a number that is not given to it as
-- text is written with 17 digits: so calls are few, and numbers are text.
local function open_line(lock, line, waiters)
  local most_in_a_call = 64 -- waiters that are passed over
  local longest_turn = 500
  local few = 8 -- before a waiter: they are not searched for dead ones

  local function clock() -- in us
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
  end

  local function remove(waiter)
    redis.call('ZREM', line, waiter)
    redis.call('HDEL', waiters, waiter, '@' .. waiter)
  end

  local function end_turn()
    redis.call('HDEL', waiters, lock)
  end

  -- Stands the waiter in its place, or keeps it there. `anew`: another call of its client has this
  -- place from now on, so that the place may be later than before.
  local function enter(now, waiter, how, waited, turn, holder, anew)
    local place = string.format('%.0f', now - waited)
    -- 2.5 times refresh (acquisition.hpp: 1 s), or some three polls, which are no farther apart
    -- than a turn is long (script.cpp), up to the longest. A client that is subscribed on a quorum
    -- of other nodes asks once a second all the same, so here it does not count as alive most of
    -- the time.
    local lives = how == 'w' and 2500 or math.max(250, 3 * math.min(turn, longest_turn))
    local alive_until = math.floor(now / 1000) + lives
    local manner = ' ' .. how .. ' ' .. turn
    local is_new -- Nothing is written if the first command is refused.
    if anew then
      is_new = redis.call('ZADD', line, place, waiter) == 1
    else
      is_new = redis.call('ZADD', line, 'LT', place, waiter) == 1
    end
    if not is_new then -- A record that says nearly the same is left: three commands less.
      local record = redis.call('HGET', waiters, waiter) or ''
      local until_then, same = string.match(record, '^(%d+)(.*)$')
      local older = alive_until - (until_then or 0)
      if same == manner and older >= 0 and older < lives / 5 then
        return
      end
    end
    local ends = redis.pcall('PEXPIRE', line, '3000')
    if type(ends) == 'table' then -- refused: who may not set the line's end does not come in
      if is_new then
        redis.call('ZREM', line, waiter)
      end
      error(ends.err)
    end
    local record = string.format('%.0f', alive_until) .. manner
    if is_new and holder and holder ~= '' then
      redis.call('HSET', waiters, waiter, record, '@' .. waiter, holder)
    else
      redis.call('HSET', waiters, waiter, record)
    end
    redis.call('PEXPIRE', waiters, '3000')
  end

  -- How many are before the waiter; nil if it does not stand here. Of many it looks at two, others
  -- each time, and takes out those that are not alive: while a lock is held nothing else does.
  local function place_of(waiter)
    local place = redis.call('ZRANK', line, waiter) or nil
    if not place or place < few then
      return place
    end
    local now = clock()
    local rank, text = now % (place - 1), string.format
    local two = redis.call('ZRANGE', line, text('%.0f', rank), text('%.0f', rank + 1))
    local records = redis.call('HMGET', waiters, two[1], two[2])
    for i = 1, 2 do
      local alive = string.match(records[i] or '', '^%d+')
      if not alive or tonumber(alive) * 1000 <= now then
        remove(two[i])
        place = place - 1
      end
    end
    return place
  end

  -- Who has its turn, and until when (ms). A turn that ends later than any can is over: the clock
  -- was set back.
  local function read_turn(text, now_ms)
    local waiter, ends = string.match(text or '', '^(%x+:%d+) (%d+)$')
    ends = tonumber(ends or 0)
    return waiter, ends - now_ms <= longest_turn and ends or 0
  end

  -- Gives the turn to the first waiter that is alive, and tells the one behind it, unless
  -- `first_only` (other nodes do), when that turn will be over. Returns for how many ms the lock is
  -- kept, 1 if it gave up after 64; nil if nobody is before `asker`, which gets a reply and needs
  -- no message.
  local function give_turn(now, asker, first_only)
    local now_ms = math.floor(now / 1000)
    local length
    for _ = 1, most_in_a_call do
      local front = redis.call('ZRANGE', line, '0', '1')
      if not front[1] then
        return nil
      end
      local fields = redis.call('HMGET', waiters, front[1], front[2] or '', lock)
      local turn, turn_ends = read_turn(fields[3], now_ms)
      for rank = length and 2 or 1, 2 do
        local waiter = front[rank]
        if not waiter or waiter == asker then
          return length
        end
        local alive, how, needs = string.match(fields[rank] or '', '^(%d+) ([wp]) (%d+)$')
        if not how or tonumber(alive) <= now_ms or (waiter == turn and turn_ends <= now_ms) then
          how = nil -- it is not alive, or did not use its turn
        elseif how == 'w' then
          -- A message that reaches nobody: that client is gone. One that this user may not send is
          -- as good as lost.
          local client, number = string.match(waiter, '^(%x+):(%d+)$')
          local message = number and number .. ' ' .. (length or 0)
          if not number or redis.pcall('PUBLISH', 'redlock:wake:' .. client, message) == 0 then
            how = nil
          end
        end
        if not how then -- it may come back, with its place
          remove(waiter)
          if waiter == turn then
            end_turn()
          end
          break
        elseif length then
          return length
        end
        length = math.min(tonumber(needs), longest_turn)
        turn, turn_ends = waiter, now_ms + length
        redis.call('HSET', waiters, lock, string.format('%s %.0f', turn, turn_ends))
        if first_only then
          return length
        end
      end
    end
    return length or 1 -- there may be more that are gone: the next call goes on with them
  end

  -- The lock has become free.
  local function freed(first_only)
    give_turn(clock(), nil, first_only)
  end

  -- The waiter leaves the line, or stands there for another call from now on (as in enter). A turn
  -- that it had goes to the first one.
  local function leave(waiter, how, ...)
    local turn = string.match(redis.call('HGET', waiters, lock) or '', '^%S+')
    remove(waiter)
    if how then
      pcall(enter, clock(), waiter, how, ...)
    end
    if turn == waiter then
      end_turn()
      if redis.call('EXISTS', lock) == 0 then
        freed(false)
      end
    end
  end

  -- The lock is free, and there are waiters: for how many ms it is kept for another than the
  -- caller, which is stood in its own place. Nil if it is kept for none, or for the caller (also if
  -- that turn is over). A turn is not for a call that came behind the one that it was given to
  -- (`anew`, as in enter).
  local function kept_for_another(waiter, how, waited, turn, holder, anew)
    local text = redis.call('HGET', waiters, lock)
    if waiter and string.match(text or '', '^%S+') == waiter then
      if not anew then
        return nil
      end
      text = nil
      end_turn()
    end
    local now = clock()
    if waiter then
      enter(now, waiter, how, waited, turn, holder, anew)
    end
    local now_ms = math.floor(now / 1000)
    local other, ends = read_turn(text, now_ms)
    if other and ends > now_ms then
      return ends - now_ms
    end
    return give_turn(now, waiter)
  end

  return {
    clock = clock,
    enter = enter,
    place_of = place_of,
    remove = remove,
    end_turn = end_turn,
    leave = leave,
    freed = freed,
    kept_for_another = kept_for_another,
  }
end

