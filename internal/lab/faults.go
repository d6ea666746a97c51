package lab

import (
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

// Fault is a way in which a file is served badly at first.
type Fault string

// The faults. All pass: after Times requests the file is served as it is.
const (
	FaultUnavailable Fault = "503"
	FaultThrottled   Fault = "429" // Retry-After 1
	FaultTruncated   Fault = "truncated"
	FaultReset       Fault = "reset"
	FaultSlow        Fault = "slow" // served, after 300 ms
)

// Faults say how files are served badly. The zero value: not at all.
type Faults struct {
	// Rate is the share of paths that have a fault, 0 to 1.
	Rate float64
	// Kinds are drawn from evenly. Default: all but 429, which closes the host
	// for everybody each time.
	Kinds []Fault
	// Times is how often a faulty path fails before it is served. Default 1.
	Times int
	// Seed draws other paths and kinds.
	Seed string
}

// Of returns the fault of a path ("/files/html/index.html"), "" for none. The
// same path has the same fault in every process.
func (f Faults) Of(p string) Fault {
	if f.Rate <= 0 || float64(hash64(f.Seed, "rate", p))/(1<<64) >= f.Rate {
		return ""
	}
	kinds := f.Kinds
	if len(kinds) == 0 {
		kinds = []Fault{FaultUnavailable, FaultTruncated, FaultReset, FaultSlow}
	}
	return kinds[hash64(f.Seed, "kind", p)%uint64(len(kinds))]
}

func (f Faults) times() int {
	if f.Times <= 0 {
		return 1
	}
	return f.Times
}

// file serves a file of SiteOptions.Files; folders and what is not there are 404.
func (s *Site) file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/files/")
	if s.files == nil {
		status(http.StatusNotFound)(w, r)
		return
	}
	f, err := s.files.Open(name)
	if err != nil {
		status(http.StatusNotFound)(w, r)
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		status(http.StatusNotFound)(w, r)
		return
	}
	if fault := s.opts.Faults.Of(r.URL.Path); fault != "" && s.ask(r.URL.Path) < s.opts.Faults.times() {
		if s.spoil(w, r, fault, f) {
			return
		}
	}
	http.ServeContent(w, r, name, info.ModTime(), f)
}

// spoil answers with a fault; false if the file is to be served after all.
func (s *Site) spoil(w http.ResponseWriter, r *http.Request, fault Fault, f io.ReadSeeker) bool {
	switch fault {
	case FaultUnavailable:
		status(http.StatusServiceUnavailable)(w, r)
	case FaultThrottled:
		s.closeFor(r.URL.Path, time.Second)
		tooMany(w, time.Second)
	case FaultTruncated:
		body, err := io.ReadAll(io.LimitReader(f, 1<<20))
		if err != nil || len(body) == 0 {
			reset(w, r)
			return true
		}
		cutAt(w, r, body, len(body)/2)
	case FaultReset:
		reset(w, r)
	case FaultSlow:
		if s.wait(r.Context(), 300*time.Millisecond) {
			return false
		}
		reset(w, r)
	default:
		status(http.StatusInternalServerError)(w, r)
	}
	return true
}
