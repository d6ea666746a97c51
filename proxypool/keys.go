package proxypool

// SchemaVersion is part of the keys' prefix: a release that lays its data out
// otherwise uses other keys.
const SchemaVersion = "hf2"

// DefaultPrefix is the keys' default prefix. The braces are the hash tag that
// keeps all of them in one slot of a Redis Cluster.
const DefaultPrefix = SchemaVersion + ":{pool}:"

// keyNames are all the keys there are, in the order in which scripts/lib_base.lua
// names them. A proxy, a host or a lease is a field, never a key of its own.
var keyNames = [...]string{
	"meta", "leases", "tombs", "outcomes",
	"deadlines", "tombq", "hosts", "hostq",
	"turns", "turnq", "proxies", "config",
	"index", "pairs", "pairq", "idents",
	"sessions", "sessq",
}

// Places of the keys that are read without a script.
const (
	keyMeta      = 0
	keyLeases    = 1
	keyTombs     = 2
	keyOutcomes  = 3
	keyDeadlines = 4
	keyHosts     = 6
	keyTurns     = 8
	keyProxies   = 10
	keyConfig    = 11
	keyPairs     = 13
	keySessions  = 16
)

func buildKeys(prefix string) []string {
	keys := make([]string, len(keyNames))
	for i, name := range keyNames {
		keys[i] = prefix + name
	}
	return keys
}
