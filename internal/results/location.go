package results

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// ErrLocation is wrapped by every refusal of ParseURL.
var ErrLocation = errors.New("results: unusable location")

// Location says where results go.
type Location struct {
	// Scheme is "file".
	Scheme string
	// Dir is an absolute, clean path.
	Dir string
}

// ParseURL reads a results URL: file:///abs/dir, or an absolute path, which means
// the same. Other schemes are refused with what is supported.
func ParseURL(raw string) (Location, error) {
	if filepath.IsAbs(raw) {
		return Location{Scheme: "file", Dir: filepath.Clean(raw)}, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return Location{}, fmt.Errorf("%w: want file:///abs/dir", ErrLocation)
	}
	switch {
	case u.Scheme != "file":
		return Location{}, fmt.Errorf("%w: scheme %q is not supported, want file:///abs/dir", ErrLocation, u.Scheme)
	case u.Host != "" && u.Host != "localhost":
		return Location{}, fmt.Errorf("%w: %q is taken for a host, want three slashes: file:///abs/dir", ErrLocation, u.Host)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return Location{}, fmt.Errorf("%w: want file:///abs/dir and nothing more", ErrLocation)
	case !strings.HasPrefix(u.Path, "/"):
		return Location{}, fmt.Errorf("%w: the path is not absolute, want file:///abs/dir", ErrLocation)
	}
	return Location{Scheme: "file", Dir: filepath.Clean(filepath.FromSlash(u.Path))}, nil
}

// String returns the location's one canonical form: "file:///abs/dir".
func (l Location) String() string {
	return (&url.URL{Scheme: l.Scheme, Path: filepath.ToSlash(l.Dir)}).String()
}

// Open opens the sink at l.
func (l Location) Open(opts LocalOptions) (*Local, error) { return OpenLocal(l.Dir, opts) }
