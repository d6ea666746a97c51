package activities

import (
	"sync"
	"time"

	"holdfast/internal/crawl"
)

// pageCache hands what an exchange learnt from Fetch to Finish, which run in the
// same process but for a crash between them: then the lease's record has it. It
// also remembers in which file this process wrote a record, so that a Finish that
// is run again writes no second line. Both are bounded; the oldest go first.
type pageCache struct {
	mu    sync.Mutex
	limit int
	pages map[string]*crawl.Page
	files map[recordKey]string
	// open are the lines that this process wrote and nobody confirmed yet.
	open  map[recordKey]openRecord
	order []func(*pageCache)
}

// openRecord is a line whose ack has not come back; record holds what names it.
type openRecord struct {
	record crawl.Record
	file   string
	since  time.Time
}

type recordKey struct {
	run string
	key crawl.RecordKey
}

func newPageCache(limit int) *pageCache {
	return &pageCache{limit: limit, pages: map[string]*crawl.Page{}, files: map[recordKey]string{}, open: map[recordKey]openRecord{}}
}

func (c *pageCache) put(lease string, p *crawl.Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages[lease] = p
	c.remember(func(c *pageCache) { delete(c.pages, lease) })
}

func (c *pageCache) get(lease string) *crawl.Page {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages[lease]
}

func (c *pageCache) file(k recordKey) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files[k]
}

func (c *pageCache) wrote(k recordKey, r crawl.Record, file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[k] = file
	c.open[k] = openRecord{record: crawl.Record{Campaign: r.Campaign, Run: r.Run, ID: r.ID, Replay: r.Replay, State: r.State}, file: file, since: time.Now()}
	c.remember(func(c *pageCache) {
		delete(c.files, k)
		delete(c.open, k) // the next opening of the file settles it
	})
}

// confirmed notes that the frontier has settled on a file for the record.
func (c *pageCache) confirmed(k recordKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, k)
}

// openBefore returns the lines that were written before t and not confirmed.
func (c *pageCache) openBefore(t time.Time) map[recordKey]openRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := map[recordKey]openRecord{}
	for k, o := range c.open {
		if o.since.Before(t) {
			old[k] = o
		}
	}
	return old
}

func (c *pageCache) remember(forget func(*pageCache)) {
	c.order = append(c.order, forget)
	if len(c.order) > 2*c.limit {
		for _, f := range c.order[:c.limit] {
			f(c)
		}
		c.order = append(c.order[:0:0], c.order[c.limit:]...)
	}
}
