package e2e_test

import (
	"sync"
	"testing"
	"time"
)

// TestStacksThatStartAtOnceTakeDifferentPorts starts some as users do in two
// terminals: the usual ports go to one of them, none takes another's.
func TestStacksThatStartAtOnceTakeDifferentPorts(t *testing.T) {
	inFull(t)
	t.Parallel()
	const n = 3
	var (
		all     [n]*process
		at      [n]ports
		started sync.WaitGroup
	)
	for i := range n {
		dir := t.TempDir()
		started.Go(func() { all[i], at[i] = up(t, dir, "--no-worker") })
	}
	started.Wait()
	taken := map[string]int{}
	for i := range n {
		if all[i] == nil {
			return // up has failed the test
		}
		for _, addr := range []string{at[i].Temporal, at[i].Redis} {
			if other, ok := taken[addr]; ok {
				t.Errorf("stacks %d and %d both say %s", other, i, addr)
			}
			taken[addr] = i
		}
	}
	for _, p := range all {
		if code := p.stop(time.Minute); code != 0 {
			t.Errorf("%s ended with %d\n%s", p.name, code, p.err.String())
		}
	}
}
