-- lib_index: which proxies can be drawn, by tag and region, in O(1).
--
-- INDEX holds, for each set ('*', 't:TAG', 'r:REGION'; of tier k above 0 with
-- '@k' behind), its members under running numbers: n|SET = count, SET|i = id,
-- at|SET|id = i. Only active proxies are members. Removing swaps the last one
-- into the gap.

local function tiered(set, tier)
  if tier == 0 then return set end
  return set .. '@' .. tier
end

local function index_sets(p)
  local sets = { tiered('*', p.tier) }
  for tag in string.gmatch(p.tags, '[^,]+') do sets[#sets + 1] = tiered('t:' .. tag, p.tier) end
  if p.region ~= '' then sets[#sets + 1] = tiered('r:' .. p.region, p.tier) end
  return sets
end

local function index_add(p)
  for _, set in ipairs(index_sets(p)) do
    if redis.call('HEXISTS', INDEX, 'at|' .. set .. '|' .. p.id) == 0 then
      local n = redis.call('HINCRBY', INDEX, 'n|' .. set, 1)
      redis.call('HSET', INDEX, set .. '|' .. n, p.id, 'at|' .. set .. '|' .. p.id, n)
    end
  end
end

local function index_remove(p)
  for _, set in ipairs(index_sets(p)) do
    local at = redis.call('HGET', INDEX, 'at|' .. set .. '|' .. p.id)
    if at then
      local n = redis.call('HGET', INDEX, 'n|' .. set)
      if at ~= n then
        local last = redis.call('HGET', INDEX, set .. '|' .. n)
        redis.call('HSET', INDEX, set .. '|' .. at, last, 'at|' .. set .. '|' .. last, at)
      end
      redis.call('HDEL', INDEX, set .. '|' .. n, 'at|' .. set .. '|' .. p.id)
      if n == '1' then
        redis.call('HDEL', INDEX, 'n|' .. set)
      else
        redis.call('HINCRBY', INDEX, 'n|' .. set, -1)
      end
    end
  end
end
