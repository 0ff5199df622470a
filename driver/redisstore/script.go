package redisstore

import (
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// Each script is sent as a whole: a server may lose its cache of scripts, and its users need one
// right less. The key is KEYS[1]. Nothing that can fail follows the HSET of a write, so that an
// error of the server means that nothing was written.
const (
	// begins refuses users without the rights in needs, and servers that are no primary or have
	// fewer replicas than the last argument demands. It leaves the replication ID in era, and the
	// clock in microseconds in now.
	begins = `
if tonumber(ARGV[#ARGV]) > 0 then table.insert(needs, {'WAIT', '0', '0'}) end
for _, c in ipairs(needs) do
  if not redis.acl_check_cmd(unpack(c)) then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. string.lower(c[1]) .. "' command on " .. (c[2] or 'the server'))
  end
end
local info = redis.call('INFO', 'replication')
local role, era = string.match(info, 'role:(%w+)'), string.match(info, 'master_replid:(%w+)')
if role ~= 'master' then return redis.error_reply('READONLY this server is a replica') end
local replicas = string.match(info, 'connected_slaves:(%d+)')
if tonumber(replicas) < tonumber(ARGV[#ARGV]) then
  return redis.error_reply('NOREPLICAS ' .. replicas .. ' of ' .. ARGV[#ARGV] .. ' replicas are connected')
end
if not era then return redis.error_reply('ERR this server tells no replication ID') end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
`
	reads = `{'INFO', 'replication'}, {'TIME'}, {'HMGET', KEYS[1], 'version'}, {'EXISTS', KEYS[1]}`

	// readScript takes the longest value that it returns.
	readScript = `local needs = {` + reads + `}` + begins + `
local r = redis.call('HMGET', KEYS[1], 'version', 'value', 'floor', 'era')
return {era, string.format('%.0f', now), redis.call('EXISTS', KEYS[1]), r[1] or '',
  string.sub(r[2] or '', 1, tonumber(ARGV[1])), r[3] or '', r[4] or ''}`

	// touchScript reads as readScript, and writes what is there once more, so that WAIT waits until
	// replicas have all that it read. WAIT waits for the last write of its connection only.
	touchScript = `local needs = {` + reads + `, {'HSET', KEYS[1], 'version', ''}}` + begins + `
local r = redis.call('HMGET', KEYS[1], 'version', 'value', 'floor', 'era')
if r[1] then redis.call('HSET', KEYS[1], 'version', r[1]) end
return {era, string.format('%.0f', now), redis.call('EXISTS', KEYS[1]), r[1] or '',
  string.sub(r[2] or '', 1, tonumber(ARGV[1])), r[3] or '', r[4] or ''}`

	writes = reads + `, {'HSET', KEYS[1], 'version', ''}, {'PUBLISH', ARGV[1], ''}`

	// writeScript takes the channel, the key as elections know it, the expected version and its
	// era, the new version and value, and the bounds of a credible floor and of a credible clock.
	// It returns the era, or nothing if the version or the era differ. A floor that was edited by
	// hand counts only if it consists of digits: the floor "nan" would never change.
	writeScript = `local needs = {` + writes + `}` + begins + `
local r = redis.call('HMGET', KEYS[1], 'version', 'floor')
if redis.call('EXISTS', KEYS[1]) == 0 then
  if ARGV[3] ~= '' then return {} end
elseif r[1] ~= ARGV[3] or era ~= ARGV[4] then
  return {}
end
local floor = tonumber(string.match(r[2] or '', '^%d+$') or 0)
if floor >= tonumber(ARGV[7]) then floor = 0 end
if now >= tonumber(ARGV[8]) then now = 0 end
local next = string.format('%.0f', math.max(floor, now) + 1)
local news = table.concat({ARGV[2], ARGV[5], next, era, ARGV[6]}, '\n')
redis.call('HSET', KEYS[1], 'value', ARGV[6], 'version', ARGV[5], 'floor', next, 'era', era)
redis.pcall('PUBLISH', ARGV[1], news)
return {era}`

	// rightsScript only checks the rights of a write. It takes the channel.
	rightsScript = `local needs = {` + writes + `}` + begins + `
return {era}`
)

// call is one run of a script.
type call struct {
	script string
	key    string
	args   []string
	writes bool
}

func (c call) command(b rueidis.Builder) rueidis.Completed {
	if c.writes {
		return b.Eval().Script(c.script).Numkeys(1).Key(c.key).Arg(c.args...).Build()
	}
	return b.EvalRo().Script(c.script).Numkeys(1).Key(c.key).Arg(c.args...).Build()
}

// texts returns the elements of a script's answer.
func texts(r rueidis.RedisResult) ([]string, error) {
	all, err := r.ToArray()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(all))
	for i := range all {
		if n, err := all[i].AsInt64(); err == nil && all[i].IsInt64() {
			out[i] = strconv.FormatInt(n, 10)
			continue
		}
		if out[i], err = all[i].ToString(); err != nil {
			return nil, fmt.Errorf("element %d of the answer: %w", i, err)
		}
	}
	return out, nil
}
