package journal

import (
	"slices"
	"strings"
)

// kind says what the front does with a command.
type kind uint8

const (
	unsupported kind = iota
	read             // runs as it is
	write            // runs as it is and is journaled as it is
	random           // runs as it is and is journaled as what it came to
	script           // runs as it is; the writes inside are journaled
	session          // of the connection: not inside a script
)

var kinds = table(map[kind]string{
	read: `GET GETRANGE MGET STRLEN BITCOUNT BITPOS GETBIT
		HEXISTS HGET HGETALL HKEYS HLEN HMGET HSTRLEN HVALS HSCAN HRANDFIELD HTTL HPTTL
		LINDEX LPOS LLEN LRANGE
		SCARD SDIFF SINTERCARD SINTER SISMEMBER SMEMBERS SMISMEMBER SRANDMEMBER SUNION SSCAN
		ZCARD ZCOUNT ZINTER ZLEXCOUNT ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
		ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE ZMSCORE ZUNION ZSCAN ZRANDMEMBER
		EXISTS EXPIRETIME PEXPIRETIME KEYS PTTL RANDOMKEY TOUCH TTL TYPE SCAN
		DBSIZE TIME ECHO PING MEMORY OBJECT`,
	write: `SET SETNX SETEX PSETEX GETSET GETDEL GETEX APPEND INCR INCRBY INCRBYFLOAT DECR DECRBY
		MSET MSETNX SETRANGE SETBIT
		HSET HMSET HSETNX HDEL HINCRBY HINCRBYFLOAT HEXPIRE HPERSIST HSETEX
		LPUSH LPUSHX RPUSH RPUSHX LPOP RPOP LREM LSET LTRIM LINSERT RPOPLPUSH LMOVE LMPOP
		SADD SREM SMOVE
		ZADD ZINCRBY ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE
		ZPOPMIN ZPOPMAX ZMPOP
		DEL UNLINK EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST RENAME RENAMENX FLUSHALL FLUSHDB`,
	random: `SPOP`,
	script: `EVAL EVALSHA EVAL_RO EVALSHA_RO`,
	session: `AUTH HELLO CLIENT CLUSTER COMMAND CONFIG INFO QUIT SELECT SCRIPT WAIT
		MULTI EXEC DISCARD UNWATCH`,
})

// timed are the write commands that set a deadline; SET and GETEX do with an option.
var timed = table(map[kind]string{
	write: `SET SETEX PSETEX GETEX HEXPIRE HSETEX EXPIRE PEXPIRE EXPIREAT PEXPIREAT`,
})

// setsDeadline reports whether the command may leave a key with a deadline. It may
// be wrong for a value that reads like an option: that costs time, nothing else.
func setsDeadline(words []string) bool {
	if _, ok := timed[words[0]]; !ok {
		return false
	}
	if words[0] != "SET" && words[0] != "GETEX" {
		return true
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		switch strings.ToUpper(w) {
		case "EX", "PX", "EXAT", "PXAT":
			return true
		}
		return false
	})
}

func table(of map[kind]string) map[string]kind {
	t := map[string]kind{}
	for k, names := range of {
		for name := range strings.FieldsSeq(names) {
			t[name] = k
		}
	}
	return t
}

// refusal is the error for a command that the front does not let through.
func refusal(name string) string {
	return "ERR " + printable(name) + " is not supported by the embedded Redis"
}

// printable cuts a client's word down to what may stand in an error line.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 40)]
}
