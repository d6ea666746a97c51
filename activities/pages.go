package activities

import (
	"sync"

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
	order []func(*pageCache)
}

type recordKey struct {
	run string
	key crawl.RecordKey
}

func newPageCache(limit int) *pageCache {
	return &pageCache{limit: limit, pages: map[string]*crawl.Page{}, files: map[recordKey]string{}}
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

func (c *pageCache) wrote(k recordKey, file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[k] = file
	c.remember(func(c *pageCache) { delete(c.files, k) })
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
