package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// minRedis is the oldest major version of Redis that the scripts are tested on.
const minRedis = 7

// checkRedis reports the version, the eviction policy and the persistence of
// the Redis that holds the pool and the frontier. What a server does not tell
// (the embedded one has no such settings) is left out.
func (a *App) checkRedis(ctx context.Context, r *report, t target, rdb *redis.Client) {
	text, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		text = ""
	}
	server := parseInfo(text)
	version := server["redis_version"]
	switch major, _ := strconv.Atoi(before(version, ".")); {
	case version == "":
		r.ok("redis", t.redisURL)
	case major < minRedis:
		r.failed("redis", fmt.Sprintf("%s, version %s", t.redisURL, version), fmt.Sprintf("use Redis %d or later, or Valkey", minRedis))
	default:
		r.ok("redis", fmt.Sprintf("%s, version %s", t.redisURL, version))
	}
	a.checkEviction(ctx, r, rdb)
	a.checkPersistence(ctx, r, rdb)
}

// checkEviction: an evicted key is a lease or a URL that was lost silently.
func (a *App) checkEviction(ctx context.Context, r *report, rdb *redis.Client) {
	text, _ := rdb.Info(ctx, "memory").Result()
	memory := parseInfo(text)
	policy, known := memory["maxmemory_policy"]
	switch {
	case !known:
		return
	case policy != "noeviction":
		r.failed("redis eviction", "maxmemory-policy is "+policy+": URLs and leases would be lost when memory is full",
			"set it: redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf")
	default:
		r.ok("redis eviction", "noeviction")
	}
}

// checkPersistence: without it a restart of Redis loses the frontier.
func (a *App) checkPersistence(ctx context.Context, r *report, rdb *redis.Client) {
	text, _ := rdb.Info(ctx, "persistence").Result()
	aof, known := parseInfo(text)["aof_enabled"]
	switch {
	case !known:
		return
	case aof == "1":
		r.ok("redis persistence", "append-only file")
	default:
		r.warn("redis persistence", "no append-only file: a restart loses what is newer than the last snapshot",
			"set it: redis-cli CONFIG SET appendonly yes, and in redis.conf")
	}
}

// parseInfo reads the answer of INFO: lines of key:value.
func parseInfo(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(k, "#") {
			out[k] = v
		}
	}
	return out
}

func before(s, sep string) string {
	head, _, _ := strings.Cut(s, sep)
	return head
}
