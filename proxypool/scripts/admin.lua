-- admin: what an operator does to proxies.
--
-- ARGV: 1 quarantine | restore | drain | remove, 2… ids
-- Output: ids that are not known; if there are any, nothing was changed
-- Invariant: a proxy in use is never deleted; a removed one goes with its last lease.

local missing, all = {}, {}
for i = 2, #ARGV do
  local p = proxy_get(ARGV[i])
  if p then all[#all + 1] = p else missing[#missing + 1] = ARGV[i] end
end
if #missing > 0 then return missing end
for _, p in ipairs(all) do
  local op = ARGV[1]
  if op == 'quarantine' and p.st ~= 'q' then
    proxy_state(p, 'q', 'operator')
  elseif op == 'drain' and p.st ~= 'd' then
    proxy_state(p, 'd', 'operator')
  elseif op == 'restore' then
    proxy_fresh(p)
    proxy_state(p, 'a', '')
  elseif op == 'remove' and p.st ~= 'x' then
    proxy_state(p, 'x', 'operator')
  end
  if p.st == 'x' and p.inuse == 0 then proxy_delete(p) else proxy_put(p) end
end
return missing
