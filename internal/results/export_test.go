package results

import "os"

// SetSync replaces the fsync of record files.
func SetSync(l *Local, fn func(*os.File) error) { l.sync = fn }

// Queued is the number of appends that wait while another one is written.
func Queued(l *Local, campaign string, run int, st Stream) int {
	dir, _ := runPath(campaign, run)
	s := l.openStream(streamKey{run: dir, stream: st})
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// CleanWorker shows cleanWorker.
func CleanWorker(name string) string { return cleanWorker(name) }
