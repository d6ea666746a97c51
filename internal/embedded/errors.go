package embedded

import "fmt"

// LockedError: another process has the data directory.
type LockedError struct {
	Dir string
	PID int // 0: unknown
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop that one, connect to it, or give another directory", e.Dir, who)
}

// VersionError: the data directory was written by a version whose data this one
// cannot read.
type VersionError struct {
	Dir  string
	What string // "holdfast data" or "temporal"
	Have string // the directory's version
	Want string // this program's
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("data directory %s holds %s version %s, this program needs %s: use the release that wrote it, or give another directory",
		e.Dir, e.What, e.Have, e.Want)
}

// ForeignDirError: the directory holds something, but not our data.
type ForeignDirError struct{ Dir, Found string }

func (e *ForeignDirError) Error() string {
	return fmt.Sprintf("%s is not a data directory (it holds %s, and no VERSION): give an empty or a new one", e.Dir, e.Found)
}

// PortError: a port that was asked for is taken.
type PortError struct {
	Service string
	Port    int
}

func (e *PortError) Error() string {
	return fmt.Sprintf("port %d for %s is taken on 127.0.0.1: free it, or ask for another", e.Port, e.Service)
}
