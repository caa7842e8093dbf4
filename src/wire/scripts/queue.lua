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
local function open_queue(lock, order)
  local queue, waiters = lock .. ':queue', lock .. ':waiters'
  local self, ticket, manner = string.match(order or '', '^(%x+:%d+) ?(%d*) ?([wp]?)$')
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local fields = redis.call('HMGET', waiters, 'turn', 'until', '@' .. (self or ''))
  local turn, turn_ends, known = fields[1], tonumber(fields[2] or 0), fields[3]
  local this = {}

  -- The last one to go leaves nothing behind: Redis deletes what is empty.
  local function remove(waiter)
    redis.call('ZREM', queue, waiter)
    redis.call('HDEL', waiters, waiter, '@' .. waiter)
    if waiter == turn then
      redis.call('HDEL', waiters, 'turn', 'until')
      turn = false
    end
  end

  -- How it is told, or nil: it is not alive, or did not use its turn. That one may come back.
  local function manner_of(waiter)
    local record = redis.call('HGET', waiters, waiter) or ''
    local alive_until, how = string.match(record, '^(%d+) ([wp])$')
    if not how or tonumber(alive_until) <= now or (waiter == turn and turn_ends <= now) then
      return nil
    end
    return how
  end

  -- Whether there is somebody to take it. A message that reaches nobody: that client is gone.
  local function tell(waiter, after)
    local how = manner_of(waiter)
    if how == 'w' then
      local client, number = string.match(waiter, '^(%x+):(%d+)$')
      if not client or redis.call('PUBLISH', 'redlock:wake:' .. client, number .. ' ' .. after) == 0
      then
        how = nil
      end
    end
    if not how then
      remove(waiter)
    end
    return how
  end

  -- Gives the turn to the first waiter that is there, and tells the one behind it when that turn
  -- will be over. Returns its length; nil if nobody is before `asker`, who gets a reply and needs
  -- no message.
  local function give_turn(asker)
    local rank, length = 0, nil
    while true do
      local waiter = redis.call('ZRANGE', queue, rank, rank)[1]
      if not waiter or waiter == asker then
        return length
      end
      local how = tell(waiter, length or 0)
      if how and length then
        return length
      elseif how then
        turn, length, rank = waiter, how == 'w' and 20 or 60, 1
        turn_ends = now + length
        redis.call('HSET', waiters, 'turn', turn, 'until', turn_ends)
      end
    end
  end

  -- Puts the waiter into its place, or keeps it there, and returns how many are before it. Nothing
  -- is written if this is refused.
  function this.enter(holder)
    redis.call('ZADD', queue, ticket, self)
    redis.call('PEXPIRE', queue, 3000)
    local record = string.format('%.0f %s', now + (manner == 'w' and 2500 or 250), manner)
    if known or (holder or '') == '' then
      redis.call('HSET', waiters, self, record)
    else
      redis.call('HSET', waiters, self, record, '@' .. self, holder)
    end
    redis.call('PEXPIRE', waiters, 3000)
    return redis.call('ZRANK', queue, self)
  end

  -- The lock is free: for how many ms it is kept for somebody else, and how many waiters are before
  -- this one, who is put into the queue. Nil if it is kept for nobody.
  function this.kept_for_another(holder)
    local running = turn and turn_ends > now
    if running and turn == self then
      return nil
    end
    if self then
      this.enter(holder)
    end
    local kept = running and turn_ends - now or give_turn(self)
    return kept, kept and self and redis.call('ZRANK', queue, self)
  end

  -- Any grant ends the turn: who had it and did not use it keeps its place all the same.
  function this.after_grant()
    if self then
      redis.call('ZREM', queue, self)
      redis.call('HDEL', waiters, self, '@' .. self, 'turn', 'until')
    else
      redis.call('HDEL', waiters, 'turn', 'until')
    end
  end

  -- The waiter of a release goes, or stays if the release says its ticket; then, if the lock has
  -- become free by that, the next one has its turn.
  function this.after_release(freed)
    local had_turn = self and turn == self
    if self and manner ~= '' then
      this.enter()
    elseif self then
      remove(self)
      freed = freed or (had_turn and redis.call('EXISTS', lock) == 0)
    end
    if freed then
      give_turn()
    end
  end

  return this
end

