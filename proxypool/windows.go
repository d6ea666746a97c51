package proxypool

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Window counts the samples of a proxy's leases in the time that just passed.
type Window struct {
	OK  int `json:"ok"`
	Bad int `json:"bad"`
}

// Windows are a proxy's three windows. Each is a ring of buckets (2 min, 10 min,
// 3 h), so it reaches back between its length less one bucket and its length.
// Leases that were open when a cooling began count once.
type Windows struct {
	TenMinutes Window `json:"10m"`
	Hour       Window `json:"1h"`
	Day        Window `json:"24h"`
}

// The ring's digits, as in scripts/lib_proxy.lua.
const (
	ringUnit = 2 * time.Minute
	ringBase = 80
	ringZero = '*'
)

// readRing sums the buckets that are not too old by now.
func readRing(s string, now time.Time) (Windows, error) {
	var w Windows
	if s == "" {
		return w, nil
	}
	head, cells, ok := strings.Cut(s, ":")
	was, err := strconv.ParseInt(head, 10, 64)
	if !ok || err != nil || len(cells) != 4*(8+6+5) {
		return w, fmt.Errorf("%w: windows", ErrReply)
	}
	number := func(i int) int { return (int(cells[i])-ringZero)*ringBase + int(cells[i+1]) - ringZero }
	epoch := max(was, now.UnixMilli()/ringUnit.Milliseconds())
	off := 0
	for _, ring := range []struct {
		to       *Window
		width, n int64
	}{{&w.Day, 90, 8}, {&w.Hour, 5, 6}, {&w.TenMinutes, 1, 5}} {
		newest, last := was/ring.width, epoch/ring.width
		for k := max(newest-ring.n+1, last-ring.n+1); k <= newest; k++ {
			at := off + 4*int(k%ring.n)
			ring.to.OK += number(at)
			ring.to.Bad += number(at + 2)
		}
		off += 4 * int(ring.n)
	}
	return w, nil
}

// suspicionKeep is how long refused credentials cast suspicion.
const suspicionKeep = 24 * time.Hour

func suspected(stamp string, proven int64, now time.Time) bool {
	at, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && at >= proven && at+suspicionKeep.Milliseconds() >= now.UnixMilli()
}
