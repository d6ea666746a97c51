package proxypool

import (
	"embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// scripts are the pool's scripts, each with the fragments it builds on.
type scripts struct {
	acquire, renew, hop, commit, release, abort *redis.Script
	closeHost, hosts                            *redis.Script
	reap, repair, recount                       *redis.Script
	imports, admin                              *redis.Script
}

func loadScripts() (*scripts, error) {
	var firstErr error
	load := func(names ...string) *redis.Script {
		var src strings.Builder
		for _, name := range names {
			b, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
			if err != nil && firstErr == nil {
				firstErr = fmt.Errorf("load script: %w", err)
			}
			src.Write(b)
			src.WriteByte('\n')
		}
		return redis.NewScript(src.String())
	}
	all := func(name string) *redis.Script {
		return load("lib_base", "lib_host", "lib_index", "lib_proxy", "lib_verdict", "lib_lease", name)
	}
	s := &scripts{
		acquire:   load("lib_base", "lib_host", "lib_index", "lib_proxy", "lib_verdict", "lib_pick", "lib_lease", "acquire"),
		renew:     all("renew"),
		hop:       all("hop"),
		commit:    all("commit"),
		release:   all("release"),
		abort:     all("abort"),
		closeHost: load("lib_base", "lib_host", "close_host"),
		hosts:     load("lib_base", "lib_host", "lib_verdict", "hosts"),
		reap:      load("lib_base", "lib_host", "lib_index", "lib_proxy", "lib_verdict", "lib_pick", "lib_lease", "reap"),
		repair:    all("repair"),
		recount:   all("recount"),
		imports:   load("lib_base", "lib_index", "lib_proxy", "import"),
		admin:     load("lib_base", "lib_index", "lib_proxy", "admin"),
	}
	return s, firstErr
}
