package arch_test

import (
	"slices"
	"testing"

	"holdfast/internal/arch"
)

func TestTheRepositoryKeepsItsRules(t *testing.T) {
	t.Parallel()
	if err := arch.Watch("../.."); err != nil {
		t.Fatal(err)
	}
	pkgs, err := arch.Load(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	// A list that lost our packages would pass every rule.
	for _, want := range []string{"workflows", "activities", "proxypool", "internal/crawl", "internal/arch"} {
		if !slices.ContainsFunc(pkgs, func(p arch.Package) bool { return p.Dir() == want }) {
			t.Errorf("package %s is not in the list", want)
		}
	}
	for _, line := range arch.Check(pkgs) {
		t.Error(line)
	}
}

// pkg describes a package at dir of the module that imports imports.
func pkg(dir string, imports ...string) arch.Package {
	p := arch.Package{ImportPath: "holdfast/" + dir, Imports: imports, Deps: imports}
	p.Name = dir[lastSlash(dir)+1:]
	return p
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

func TestCheckFindsWhatBreaksTheRules(t *testing.T) {
	t.Parallel()
	linked := pkg("starter", "holdfast/starter/cli")
	linked.Deps = append(linked.Deps, "go.temporal.io/server/temporal")
	embedded := pkg("internal/embedded", "go.temporal.io/server/temporal")
	slow := pkg("proxypool")
	slow.XTestImports = []string{"holdfast/internal/embedded"}
	named := pkg("internal/results/codec")
	named.Name = "common"

	tests := map[string]struct {
		pkgs []arch.Package
		want []string
	}{
		"a sound graph": {
			pkgs: []arch.Package{
				pkg("workflows", "holdfast/internal/crawl", "go.temporal.io/sdk/workflow", "net/url", "time"),
				pkg("worker", "holdfast/worker/host"),
				pkg("worker/host", "holdfast/activities", "holdfast/workflows"),
				pkg("internal/crawl", "net", "net/url", "math/rand/v2"),
				embedded,
			},
		},
		"a workflow that imports the pool": {
			pkgs: []arch.Package{pkg("workflows", "holdfast/proxypool")},
			want: []string{"holdfast/workflows: imports holdfast/proxypool"},
		},
		"a workflow that imports activities": {
			pkgs: []arch.Package{pkg("workflows", "holdfast/activities")},
			want: []string{"holdfast/workflows: imports holdfast/activities"},
		},
		"a workflow that reads files": {
			pkgs: []arch.Package{pkg("workflows", "os")},
			want: []string{"holdfast/workflows: imports os"},
		},
		"a workflow with a generator of its own": {
			pkgs: []arch.Package{pkg("workflows", "math/rand/v2")},
			want: []string{"holdfast/workflows: imports math/rand/v2"},
		},
		"pure rules that draw from the global generator": {
			pkgs: []arch.Package{pkg("internal/crawl", "math/rand")},
			want: []string{"holdfast/internal/crawl: imports math/rand"},
		},
		"pure rules that know another part": {
			pkgs: []arch.Package{pkg("internal/crawl", "holdfast/internal/fetch")},
			want: []string{"holdfast/internal/crawl: imports holdfast/internal/fetch"},
		},
		"a starter that imports activities": {
			pkgs: []arch.Package{pkg("starter/cli", "holdfast/activities")},
			want: []string{"holdfast/starter/cli: imports holdfast/activities"},
		},
		"a worker that imports the starter": {
			pkgs: []arch.Package{pkg("worker/host", "holdfast/starter/cli")},
			want: []string{"holdfast/worker/host: imports holdfast/starter/cli"},
		},
		"a starter that links the server three imports away": {
			pkgs: []arch.Package{linked},
			want: []string{"holdfast/starter: links go.temporal.io/server"},
		},
		"a second importer of the server": {
			pkgs: []arch.Package{pkg("standalone", "go.temporal.io/server/common/log")},
			want: []string{"holdfast/standalone: imports go.temporal.io/server/common/log"},
		},
		"a module whose path only begins like the server's": {
			pkgs: []arch.Package{pkg("worker", "go.temporal.io/serverless")},
		},
		"a fast test that links the server": {
			pkgs: []arch.Package{embedded, slow},
			want: []string{"holdfast/proxypool: its tests link go.temporal.io/server through holdfast/internal/embedded"},
		},
		"a folder with an empty name": {
			pkgs: []arch.Package{pkg("internal/results/util")},
			want: []string{`holdfast/internal/results/util: the name "util" says nothing`},
		},
		"a package with an empty name": {
			pkgs: []arch.Package{named},
			want: []string{`holdfast/internal/results/codec: the name "common" says nothing`},
		},
		"a package outside the table": {
			pkgs: []arch.Package{pkg("internal/crawler")},
			want: []string{"holdfast/internal/crawler: no room of the table: give it one, with what it may import"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := slices.DeleteFunc(arch.Check(tc.pkgs), func(line string) bool {
				// Rooms that a small graph lacks are the subject of another test.
				return slices.Contains(missing, line)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("Check = %q, want %q", got, tc.want)
			}
		})
	}
}

// missing is what Check says of every room but standalone when none has a package.
var missing = arch.Check([]arch.Package{pkg("standalone")})

func TestWithStandaloneNoPartMayBeMissing(t *testing.T) {
	t.Parallel()
	if want := "workflows: room of the table without a package"; !slices.Contains(missing, want) {
		t.Errorf("Check = %q, want a line %q", missing, want)
	}
}
