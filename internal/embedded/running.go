package embedded

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Running reports whether a process runs on the data directory. Its kept ports
// mean nothing otherwise: another stack may have taken them.
func Running(dir string) bool {
	file := filepath.Join(dir, lockFile)
	if _, err := os.Stat(file); err != nil {
		return false
	}
	lock := flock.New(file, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil || !free {
		return true
	}
	_ = lock.Unlock() // it was only looked at
	return false
}
