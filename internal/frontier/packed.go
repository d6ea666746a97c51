package frontier

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/crawl"
)

// packed is a URL as the hash of URLs holds it; scripts/lib.lua states the order.
type packed struct {
	state            crawl.State
	replay           int
	epoch            int64
	sinceMS, untilMS int64
	// word is the reason of an end, or what a waiting URL waits for.
	word   string
	runID  string
	file   string
	proxy  string
	host   string
	accept int64
	depth  int
	extras bool
	method string
	parent string
	url    string
}

const packedFields = 17

var errPacked = errors.New("a stored URL is not as this version packs it")

func unpack(v string) (packed, error) {
	f := strings.SplitN(v, "\t", packedFields)
	if len(f) != packedFields {
		return packed{}, errPacked
	}
	var p packed
	var bad bool
	num := func(s string) int64 {
		if s == "" {
			return 0
		}
		n, err := strconv.ParseInt(s, 10, 64)
		bad = bad || err != nil
		return n
	}
	p.state = stateOf(f[0])
	p.replay, p.epoch, p.sinceMS, p.untilMS = int(num(f[1])), num(f[2]), num(f[3]), num(f[4])
	p.word, p.runID, p.file, p.proxy, p.host = f[5], f[7], f[8], f[9], f[10]
	p.accept, p.depth, p.extras = num(f[11]), int(num(f[12])), f[13] == "1"
	p.method, p.parent, p.url = f[14], f[15], f[16]
	if bad || p.state == "" {
		return packed{}, errPacked
	}
	return p, nil
}

func (p packed) claim(id string) Claim {
	return Claim{
		ID: id, URL: p.url, Method: p.method, Host: p.host, Depth: p.depth, Parent: p.parent,
		Replay: p.replay, Epoch: p.epoch, AcceptedMS: p.accept, Extras: p.extras,
	}
}

func (p packed) info(id string) URLInfo {
	u := URLInfo{
		ID: id, URL: p.url, Host: p.host, State: p.state, Replay: p.replay,
		File: p.file, Proxy: p.proxy, RunID: p.runID,
		Method: p.method, AcceptedMS: p.accept,
	}
	switch {
	case p.state.Terminal():
		u.Reason = crawl.Reason(p.word)
	case p.state == crawl.Waiting:
		u.Why, u.Until = crawl.WaitReason(p.word), time.UnixMilli(p.untilMS).UTC()
	}
	return u
}

func (p packed) open(id string, nowMS int64) OpenClaim {
	return OpenClaim{
		ID: id, Replay: p.replay, Epoch: p.epoch, RunID: p.runID, State: p.state,
		Age: time.Duration(nowMS-p.sinceMS) * time.Millisecond,
		URL: p.url, Method: p.method, Host: p.host, Depth: p.depth, Parent: p.parent,
		AcceptedMS: p.accept, Extras: p.extras,
	}
}

// static packs the part of a URL that never changes.
func (e Entry) static() string {
	extras := "0"
	if e.Request.HasExtras() {
		extras = "1"
	}
	method := e.Request.Method
	if method == "GET" {
		method = ""
	}
	return strings.Join([]string{strconv.Itoa(e.Depth), extras, method, e.Parent, e.Request.URL}, "\t")
}

func stateOf(letter string) crawl.State {
	switch letter {
	case "q":
		return crawl.Queued
	case "r":
		return crawl.Running
	case "w":
		return crawl.Waiting
	case "c":
		return crawl.Completed
	case "f":
		return crawl.Failed
	case "s":
		return crawl.Skipped
	case "x":
		return crawl.StateCanceled
	}
	return ""
}

// endLetter returns the letter of a terminal state, "" for another.
func endLetter(s crawl.State) string {
	switch s {
	case crawl.Completed:
		return "c"
	case crawl.Failed:
		return "f"
	case crawl.Skipped:
		return "s"
	case crawl.StateCanceled:
		return "x"
	}
	return ""
}
