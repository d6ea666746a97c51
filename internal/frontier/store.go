package frontier

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// DefaultPrefix starts every key; its number is the schema's version.
const DefaultPrefix = "hf1"

// Options of a Store.
type Options struct {
	// Prefix starts every key of the store. Default "hf1".
	Prefix string
}

// Store is the frontier of a deployment's campaigns. It holds nothing of its own
// and may be used by any number of goroutines.
type Store struct {
	rdb     redis.UniversalClient
	prefix  string
	scripts scripts
}

// New returns a store on rdb. It asks nothing of Redis yet.
func New(rdb redis.UniversalClient, opts Options) *Store {
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	return &Store{rdb: rdb, prefix: opts.Prefix, scripts: loadScripts()}
}

//go:embed scripts/*.lua
var sources embed.FS

// scripts are the store's Lua scripts, one file each.
type scripts struct {
	alloc, create, steer, add, takeover, peek, claim, started, requeue, skip, park, ack, claims *redis.Script
}

func loadScripts() scripts {
	// The files are part of the program: one that is missing shows in every test.
	read := func(name string) string {
		b, _ := sources.ReadFile("scripts/" + name + ".lua")
		return string(b)
	}
	lib := read("lib")
	run := func(name string) *redis.Script { return redis.NewScript(lib + read(name)) }
	return scripts{
		alloc:  redis.NewScript(read("alloc")),
		create: run("create"), steer: run("steer"), add: run("add"), takeover: run("takeover"),
		peek: run("peek"), claim: run("claim"), started: run("started"), requeue: run("requeue"),
		skip: run("skip"), park: run("park"), ack: run("ack"), claims: run("claims"),
	}
}

// runKeys are the keys of one run, in the order that scripts/lib.lua states.
type runKeys struct {
	meta, urls, extras, queue, hosts, ring, claims, waits, dead, reasons, batches, unwritten string
}

// keys returns the keys of a run: one fixed set under one hash tag, whatever the
// number of its URLs and hosts.
func (s *Store) keys(run string) runKeys {
	k := func(name string) string { return s.prefix + ":f:{" + run + "}:" + name }
	return runKeys{
		k("meta"), k("urls"), k("extras"), k("queue"), k("hosts"), k("ring"),
		k("claims"), k("waits"), k("dead"), k("reasons"), k("batches"), k("unwritten"),
	}
}

func (k runKeys) all() []string {
	return []string{
		k.meta, k.urls, k.extras, k.queue, k.hosts, k.ring,
		k.claims, k.waits, k.dead, k.reasons, k.batches, k.unwritten,
	}
}

// regKey returns a key of the registry.
func (s *Store) regKey(name string) string { return s.prefix + ":reg:{reg}:" + name }

// word runs a script that answers one word and maps it to an error of the package.
func (s *Store) word(ctx context.Context, script *redis.Script, run string, args ...any) (string, error) {
	w, err := script.Run(ctx, s.rdb, s.keys(run).all(), args...).Text()
	if err != nil {
		return "", err
	}
	return w, wordError(w)
}

// list runs a script that answers a list of strings, the first of them a word,
// and returns the rest.
func (s *Store) list(ctx context.Context, script *redis.Script, run string, args ...any) ([]string, error) {
	l, err := script.Run(ctx, s.rdb, s.keys(run).all(), args...).StringSlice()
	if err != nil {
		return nil, err
	}
	if len(l) == 0 {
		return nil, errors.New("empty answer of a script")
	}
	return l[1:], wordError(l[0])
}

func wordError(w string) error {
	switch w {
	case "norun":
		return ErrNoRun
	case "nourl":
		return ErrNoURL
	case "fenced":
		return ErrFenced
	case "ended":
		return ErrRunEnded
	case "sealed":
		return ErrSealed
	}
	return nil
}

// plain refuses what would break a packed URL: control characters, of which the
// tab is the separator.
func plain(what, v string) error {
	if strings.IndexFunc(v, func(r rune) bool { return r < ' ' }) >= 0 {
		return fmt.Errorf("%s holds a control character", what)
	}
	return nil
}
