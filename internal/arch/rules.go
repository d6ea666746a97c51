package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Room is a part of the repository: a folder with everything below it.
type Room struct {
	Dir string
	// May lists the rooms whose packages it may import. Its own packages, the
	// standard library and modules of others are not listed here.
	May []string
	// Never lists packages of others that it must not import directly, each with
	// everything below it. An entry that ends in "!" means this package alone.
	Never []string
}

// world is what deterministic code must not touch: files, sockets, processes
// and random numbers of its own.
var world = []string{
	"os", "io/ioutil", "net!", "net/http", "syscall", "math/rand", "crypto/rand",
	"database/sql", "github.com/redis", "go.temporal.io/sdk/client", "go.temporal.io/sdk/activity",
}

// impure is what the pure rules of crawl must not touch: as world, but the parsers
// of net and net/http and seeded generators are pure.
var impure = []string{
	"os", "io/ioutil", "syscall", "math/rand!", "crypto/rand",
	"database/sql", "github.com/redis", "go.temporal.io",
}

// Rooms returns the table of docs/architecture.md: who may import whom.
func Rooms() []Room {
	below := []string{"internal/crawl", "internal/fetch", "internal/frontier", "internal/results", "internal/robots", "internal/version", "proxypool"}
	cluster := append([]string{"activities", "workflows"}, below...)
	all := append([]string{"internal/embedded", "internal/lab", "starter", "worker"}, cluster...)
	return []Room{
		{Dir: "internal/crawl", Never: impure},
		{Dir: "workflows", May: []string{"internal/crawl"}, Never: world},
		{Dir: "activities", May: append([]string{"workflows"}, below...)},
		{Dir: "proxypool", May: []string{"internal/crawl"}},
		{Dir: "internal/fetch", May: []string{"internal/crawl"}},
		{Dir: "internal/frontier", May: []string{"internal/crawl"}},
		{Dir: "internal/results", May: []string{"internal/crawl"}},
		{Dir: "internal/robots", May: []string{"internal/crawl"}},
		{Dir: "internal/journal"},
		{Dir: "internal/version"},
		{Dir: "internal/embedded", May: []string{"internal/journal"}},
		{Dir: "internal/lab", May: []string{"internal/crawl"}},
		{Dir: "worker", May: cluster},
		{Dir: "starter", May: append([]string{"workflows"}, below...)},
		{Dir: "internal/bench", May: append([]string{"internal/lab", "worker"}, cluster...)},
		{Dir: "standalone", May: append([]string{"internal/bench"}, all...)},
		{Dir: "internal/e2e", May: append([]string{"internal/journal", "standalone"}, all...)},
		{Dir: "internal/arch"},
		{Dir: "deploy"},
	}
}

const (
	server   = "go.temporal.io/server"
	uiServer = "github.com/temporalio/ui-server"
	embedded = "internal/embedded"
)

// linkers are the rooms that may link the embedded server, in their tests too:
// each such binary costs half a minute of linking and some 200 MB, and a program
// that runs against a cluster has no use for it.
var linkers = []string{embedded, "internal/e2e", "standalone"}

// empty are package names that say nothing of what is inside.
var empty = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "misc", "base"}

// Check returns one line for each way in which pkgs break the rules, sorted.
func Check(pkgs []Package) []string {
	var broken []string
	report := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	linksServer := map[string]bool{}
	for _, p := range pkgs {
		linksServer[p.ImportPath] = slices.ContainsFunc(p.Deps, isServer)
	}
	seen := map[string]bool{}
	for _, p := range pkgs {
		room, ok := roomOf(p.Dir())
		if !ok {
			report("%s: no room of the table: give it one, with what it may import", p.ImportPath)
			continue
		}
		seen[room.Dir] = true
		checkName(p, report)
		checkImports(p, room, report)
		if !slices.Contains(linkers, room.Dir) {
			if linksServer[p.ImportPath] {
				report("%s: links %s", p.ImportPath, server)
			}
			checkTests(p, linksServer, report)
		}
	}
	// standalone is all parts together: with it, none may be missing.
	if seen["standalone"] {
		for _, room := range Rooms() {
			if !seen[room.Dir] {
				report("%s: room of the table without a package", room.Dir)
			}
		}
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

func checkName(p Package, report func(string, ...any)) {
	for _, name := range append(strings.Split(p.Dir(), "/"), p.Name) {
		if slices.Contains(empty, name) {
			report("%s: the name %q says nothing", p.ImportPath, name)
		}
	}
}

// checkImports holds the table for the package itself, not for its tests.
func checkImports(p Package, room Room, report func(string, ...any)) {
	for _, imp := range p.Imports {
		if dir := dirOf(imp); dir != "" {
			to, _ := roomOf(dir)
			if to.Dir != room.Dir && !slices.Contains(room.May, to.Dir) {
				report("%s: imports %s", p.ImportPath, imp)
			}
		}
		if slices.ContainsFunc(room.Never, func(never string) bool { return matches(imp, never) }) {
			report("%s: imports %s", p.ImportPath, imp)
		}
		if room.Dir != embedded && (isServer(imp) || within(imp, uiServer)) {
			report("%s: imports %s", p.ImportPath, imp)
		}
	}
}

// checkTests keeps the embedded server out of the tests of most packages.
func checkTests(p Package, linksServer map[string]bool, report func(string, ...any)) {
	for _, imp := range append(slices.Clone(p.TestImports), p.XTestImports...) {
		if isServer(imp) || linksServer[imp] {
			report("%s: its tests link %s through %s", p.ImportPath, server, imp)
		}
	}
}

func isServer(path string) bool { return within(path, server) }

func matches(imp, never string) bool {
	if exact, ok := strings.CutSuffix(never, "!"); ok {
		return imp == exact
	}
	return within(imp, never)
}

// roomOf returns the room of a folder below the module.
func roomOf(dir string) (Room, bool) {
	for _, r := range Rooms() {
		if within(dir, r.Dir) {
			return r, true
		}
	}
	return Room{}, false
}
