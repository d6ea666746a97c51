package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPorts keeps other starts of this user off the ports from their choice until
// our parts listen there. Two starts at once would both find 7233 free, and the
// Temporal server that comes second does not refuse: it breaks the process.
//
// The lock is a file of the system's temporary directory, and best effort: where
// there can be none, or ctx ends, the start goes on without.
func lockPorts(ctx context.Context) (unlock func()) {
	lock := flock.New(filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-ports-%d.lock", os.Getuid())))
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if held, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil || !held {
		return func() {}
	}
	return func() { _ = lock.Unlock() }
}
