-- Notes the workflow runs of claims.
--
-- ARGV  for each: id, epoch, run id
-- OUT   "ok" or "norun"
-- HOLDS only the claim of that epoch is marked.
if call('HEXISTS', META, 'state') == 0 then return 'norun' end
for i = 1, #ARGV, 3 do
  local u = url_get(ARGV[i])
  if u and u.epoch == ARGV[i + 1] and (u.state == 'r' or u.state == 'w') then
    u.run = ARGV[i + 2]
    url_put(u)
  end
end
return 'ok'
