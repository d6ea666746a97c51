package results

import "holdfast/internal/crawl"

// maxRecent bounds how many lines a stream remembers: well above the requests
// that a worker has between their append and their ack.
const maxRecent = 4096

// ending is what tells two records of one key apart: how the request ended.
type ending struct {
	state  crawl.State
	reason crawl.Reason
}

func endingOf(r crawl.Record) ending {
	e := ending{state: r.State}
	if r.Reason != nil {
		e.reason = *r.Reason
	}
	return e
}

// place is the file in which a line lies, and its ending.
type place struct {
	file string
	end  ending
}

// recent remembers the last lines by key, in memory that is bounded.
type recent struct {
	at   map[crawl.RecordKey]place
	ring []crawl.RecordKey
	next int
}

func (r *recent) get(k crawl.RecordKey) (place, bool) {
	p, ok := r.at[k]
	return p, ok
}

func (r *recent) put(k crawl.RecordKey, p place) {
	if r.at == nil {
		r.at = make(map[crawl.RecordKey]place)
	}
	_, known := r.at[k]
	r.at[k] = p
	if known {
		return
	}
	if len(r.ring) < maxRecent {
		r.ring = append(r.ring, k)
		return
	}
	delete(r.at, r.ring[r.next])
	r.ring[r.next] = k
	r.next = (r.next + 1) % maxRecent
}

// forget takes out the lines of keys in file.
func (r *recent) forget(keys map[crawl.RecordKey]bool, file string) {
	for k := range keys {
		if r.at[k].file == file {
			delete(r.at, k)
		}
	}
}
