package results

import (
	"io"

	"holdfast/internal/crawl"
)

// Body receives a decoded body in chunks of any size. It is hashed, compressed
// and written on the way, in memory that does not grow with it. Exactly one of
// Commit and Discard must be called.
type Body interface {
	io.Writer
	// Commit makes the body durable under its content's name and returns where
	// it lies and the SHA-256 of what was written, in hex.
	Commit() (crawl.BodyRef, string, error)
	// Discard removes what was written. A no-op after Commit.
	Discard()
}

// Confirmed answers, for record keys of one run, in which results file each is
// confirmed; "" for none. The frontier's RecordFiles is one.
type Confirmed func(keys []crawl.RecordKey) ([]string, error)

// RunMeta is what run.json says of a run.
type RunMeta struct {
	Campaign string     `json:"campaign"`
	Run      int        `json:"run"`
	Started  string     `json:"started"`
	Source   string     `json:"source,omitempty"`
	Spec     crawl.Spec `json:"spec"`
	// Version is Holdfast's own.
	Version string `json:"version"`
}
