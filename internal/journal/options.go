package journal

import (
	"errors"
	"fmt"
	"time"
)

// Errors of Open.
var (
	// ErrLocked: another process, or another Server of this one, has the directory open.
	ErrLocked = errors.New("journal: directory is in use")
	// ErrCorrupt: a record that is not the torn tail of the last segment does not
	// check. Nothing was changed on disk.
	ErrCorrupt = errors.New("journal: corrupt")
)

// Options of a Server. The zero value is usable.
type Options struct {
	// Port to listen on, on loopback. 0: the system chooses.
	Port int
	// Sync is the time between two fsyncs of the journal. Default 1 s.
	Sync time.Duration
	// CompactEvery is the number of records between two snapshots. Default 50,000.
	CompactEvery int
	// Resolution is the step of TIME while some key has a deadline: each step costs
	// a walk over all keys. Default 5 ms.
	Resolution time.Duration
	// MaxConns is the number of clients connected at once. Default 1,000.
	MaxConns int
	// OnError is told of what goes wrong in the background (a compaction that
	// failed and will be tried again). Default: nobody.
	OnError func(error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o *Options) defaults() error {
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("journal: port %d is not a port", o.Port)
	}
	if o.Sync < 0 || o.Resolution < 0 || o.CompactEvery < 0 || o.MaxConns < 0 {
		return errors.New("journal: a negative option")
	}
	if o.Sync == 0 {
		o.Sync = time.Second
	}
	if o.CompactEvery == 0 {
		o.CompactEvery = 50_000
	}
	if o.Resolution == 0 {
		o.Resolution = 5 * time.Millisecond
	}
	if o.MaxConns == 0 {
		o.MaxConns = 1000
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}
