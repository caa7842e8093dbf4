-- SPDX-License-Identifier: MIT
-- Who waits for a lock on this node. Stands in front of the scripts that take locks and give them
-- back; nothing of it runs where nobody waits. Two keys beside the lock, which expire by themselves
-- and are gone with the last waiter:
--   LOCK:queue    sorted set: waiter -> ticket
--   LOCK:waiters  hash: waiter -> until when it counts as alive (ms of this node's clock), and w if
--                 its client is subscribed here, p if it polls; @waiter -> who that is, for people;
--                 turn, until -> the waiter whom the lock is kept for, and for how long
-- A waiter is CLIENT:NUMBER. What redlock:wake:CLIENT is told: NUMBER, and after how many ms it may
-- ask for the lock. The queue only adds refusals and messages, so a lock is as safe with a damaged
-- one or without it; that is why its errors (a missing permission, a key of another type, a full
-- node) are caught by the callers, who go on as if nobody waited.
--
-- A call to Redis costs more than all the Lua around it, and a number that is not given to it as
-- text is written with 17 digits: so calls are few, and numbers are text.
local function open_queue()
  local function clock()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
  end

  -- Puts the waiter into its place, or keeps it there.
  local function enter(lock, order, holder, now)
    local self, ticket, manner, who = string.match(order, '^(%x+:%d+) (%d+) ([wp]) ?(.*)$')
    local queue, waiters = lock .. ':queue', lock .. ':waiters'
    local until_ms = (now or clock()) + (manner == 'w' and 2500 or 250)
    local record = string.format('%d %s', until_ms, manner)
    -- Nothing is written if this is refused.
    local is_new = redis.call('ZADD', queue, ticket, self) == 1
    redis.call('PEXPIRE', queue, '3000')
    holder = holder or who
    if is_new and holder ~= '' then
      redis.call('HSET', waiters, self, record, '@' .. self, holder)
    else
      redis.call('HSET', waiters, self, record)
    end
    redis.call('PEXPIRE', waiters, '3000')
  end

  -- Gives the turn to the first waiter that is there, and tells the one behind it, unless another
  -- node does, when that turn will be over. Returns its length; nil if nobody is before `asker`,
  -- who gets a reply and needs no message.
  local function give_turn(lock, now, asker, first_only)
    local queue, waiters = lock .. ':queue', lock .. ':waiters'
    local length
    while true do
      local front = redis.call('ZRANGE', queue, '0', '1')
      if not front[1] then
        return nil
      end
      local fields = redis.call('HMGET', waiters, front[1], front[2] or '', 'turn', 'until')
      local turn, turn_ends = fields[3], tonumber(fields[4] or 0)
      for rank = length and 2 or 1, 2 do
        local waiter = front[rank]
        if not waiter or waiter == asker then
          return length
        end
        local alive_until, how = string.match(fields[rank] or '', '^(%d+) ([wp])$')
        if not how or tonumber(alive_until) <= now or (waiter == turn and turn_ends <= now) then
          how = nil -- it is not alive, or did not use its turn
        elseif how == 'w' then
          -- A message that reaches nobody: that client is gone.
          local client, number = string.match(waiter, '^(%x+):(%d+)$')
          local message = number and number .. ' ' .. (length or 0)
          if not number or redis.call('PUBLISH', 'redlock:wake:' .. client, message) == 0 then
            how = nil
          end
        end
        if not how then -- it may come back
          redis.call('ZREM', queue, waiter)
          redis.call('HDEL', waiters, waiter, '@' .. waiter)
          if waiter == turn then
            redis.call('HDEL', waiters, 'turn', 'until')
          end
          break
        elseif length then
          return length
        end
        length = how == 'w' and 20 or 60
        turn, turn_ends = waiter, now + length
        redis.call('HSET', waiters, 'turn', turn, 'until', string.format('%d', turn_ends))
        if first_only then
          return length
        end
      end
    end
  end

  -- The waiter of a release goes, or is put into its place if the release says its ticket; then, if
  -- the lock has become free by that, the next one has its turn. Returns how many are before a
  -- waiter that was put into its place.
  local function after_release(lock, order, freed)
    local first_only = string.sub(order, 1, 1) == '!'
    if first_only then
      order = string.sub(order, 2)
    end
    local self, ticket = string.match(order, '^(%x+:%d+) ?(%d*)')
    local enters = self and ticket ~= ''
    local now = (freed or enters) and clock()
    if enters then
      enter(lock, order, nil, now)
    elseif self then
      local waiters = lock .. ':waiters'
      local had_turn = redis.call('HGET', waiters, 'turn') == self
      redis.call('ZREM', lock .. ':queue', self)
      redis.call('HDEL', waiters, self, '@' .. self)
      if had_turn then
        redis.call('HDEL', waiters, 'turn', 'until')
        freed = freed or redis.call('EXISTS', lock) == 0
      end
    end
    if freed then
      give_turn(lock, now or clock(), nil, first_only)
    end
    return enters and redis.call('ZRANK', lock .. ':queue', self)
  end

  -- The lock is free, and there are waiters: for how many ms it is kept for somebody else, and how
  -- many are before this one, who is put into the queue. Nil if it is kept for nobody.
  local function kept_for_another(lock, order, self, holder)
    local turn = redis.call('HMGET', lock .. ':waiters', 'turn', 'until')
    if self and turn[1] == self then
      return nil
    end
    local now = clock()
    if self then
      enter(lock, order, holder, now)
    end
    local kept = turn[1] and tonumber(turn[2] or 0) - now or 0
    if kept <= 0 then
      kept = give_turn(lock, now, self)
    end
    return kept, kept and self and redis.call('ZRANK', lock .. ':queue', self)
  end

  return enter, after_release, kept_for_another
end

