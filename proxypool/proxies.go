package proxypool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/internal/crawl"
)

// Entry is a proxy to import. It prints without credentials, as crawl.Proxy does.
type Entry struct {
	// Proxy is the address, with credentials; its ID is given by the pool.
	Proxy crawl.Proxy
	// Line is where it stands in the file it came from, from 1.
	Line int
	// Source names the list it came from; zero fields take ImportOptions'.
	Source string
	// Expires is when it must no longer be leased; zero: never.
	Expires time.Time
	// MaxConcurrency is the number of leases at once. Default 1.
	MaxConcurrency int
	// MinReuse is the time between two grants. 0: none.
	MinReuse time.Duration
	// Tier is what it costs, from 0, the cheapest, to MaxTier; see Selector.MaxTier.
	Tier int
}

// ImportOptions are what a list does not say for itself.
type ImportOptions struct {
	// Scheme of lines that name none. Default "http".
	Scheme string
	// Source, Region, Expires, MaxConcurrency, MinReuse and Tier fill an entry's
	// zero fields; Tags are added to its own.
	Source         string
	Region         string
	Tags           []string
	Expires        time.Time
	MaxConcurrency int
	MinReuse       time.Duration
	Tier           int
	// DryRun says what would be done and changes nothing.
	DryRun bool
}

// ImportReport is what an import did.
type ImportReport struct {
	Added     int `json:"added"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	// Repeated counts entries that name the same proxy as a later one: that one holds.
	Repeated int `json:"repeated"`
	// IDs are the proxies' ids in the order given, repeated ones left out; an id
	// that a dry run would give is empty.
	IDs []string `json:"ids"`
}

// importChunk is how many proxies one script call takes.
const importChunk = 100

// Import adds proxies, and brings those known by (scheme, host, port, user name)
// up to date, keeping their ids, leases and health. A draining one comes back;
// so does one quarantined for its credentials, if they changed. All entries are
// checked first; an import that was killed can simply be run again.
func (p *Pool) Import(ctx context.Context, entries []Entry, opts ImportOptions) (ImportReport, error) {
	var rep ImportReport
	at := map[string]int{}
	var args [][]any
	var problems []error
	for _, e := range entries {
		e = e.filled(opts)
		a, err := e.args()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		id := identity(e.Proxy)
		if i, ok := at[id]; ok {
			rep.Repeated++
			args[i] = a
			continue
		}
		at[id] = len(args)
		args = append(args, a)
	}
	if err := errors.Join(problems...); err != nil {
		return ImportReport{}, err
	}
	dry := "0"
	if opts.DryRun {
		dry = "1"
	}
	for chunk := range slices.Chunk(args, importChunk) {
		flat := []any{dry}
		for _, a := range chunk {
			flat = append(flat, a...)
		}
		reply, err := p.run(ctx, p.scripts.imports, flat...).Slice()
		if err != nil {
			return rep, fmt.Errorf("import proxies: %w", err)
		}
		if err := rep.count(reply, len(chunk)); err != nil {
			return rep, fmt.Errorf("import proxies: %w", err)
		}
	}
	return rep, nil
}

func (r *ImportReport) count(reply []any, want int) error {
	if len(reply) != want {
		return ErrReply
	}
	for _, row := range reply {
		f, ok := row.([]any)
		if !ok || len(f) != 2 {
			return ErrReply
		}
		id, _ := f[0].(string)
		switch f[1] {
		case "added":
			r.Added++
		case "updated":
			r.Updated++
		default:
			r.Unchanged++
		}
		r.IDs = append(r.IDs, id)
	}
	return nil
}

func (e Entry) filled(o ImportOptions) Entry {
	if e.Source == "" {
		e.Source = o.Source
	}
	if e.Proxy.Region == "" {
		e.Proxy.Region = o.Region
	}
	if e.Proxy.Scheme == "" {
		e.Proxy.Scheme = o.scheme()
	}
	tags := append(slices.Clone(e.Proxy.Tags), o.Tags...)
	slices.Sort(tags)
	e.Proxy.Tags = slices.Compact(tags)
	if e.Expires.IsZero() {
		e.Expires = o.Expires
	}
	if e.MaxConcurrency <= 0 {
		e.MaxConcurrency = max(o.MaxConcurrency, 1)
	}
	if e.MinReuse <= 0 {
		e.MinReuse = o.MinReuse
	}
	if e.Tier == 0 {
		e.Tier = o.Tier
	}
	return e
}

// args are import.lua's for one proxy.
func (e Entry) args() ([]any, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("%w: proxy %d: %w", ErrRequest, e.Line, err)
	}
	conf, err := encodeConfig(e)
	if err != nil {
		return nil, fmt.Errorf("encode proxy: %w", err)
	}
	expires := int64(0)
	if !e.Expires.IsZero() {
		expires = e.Expires.UnixMilli()
	}
	return []any{
		identity(e.Proxy), conf, e.Proxy.Scheme, e.Proxy.Region, joinSet(e.Proxy.Tags),
		expires, e.MaxConcurrency, millis(e.MinReuse), e.Tier, gateway(e.Proxy), credentials(e.Proxy),
	}, nil
}

// check refuses what the pool cannot hold; its errors never show a credential.
func (e Entry) check() error {
	if !slices.Contains(schemes, e.Proxy.Scheme) {
		return errScheme
	}
	if e.Proxy.Host == "" || strings.ContainsAny(e.Proxy.Host, "| \t\r\n") {
		return errHost
	}
	if e.Proxy.Port < 1 || e.Proxy.Port > 65535 {
		return errPort
	}
	if e.Proxy.Region != "" && !isWord(e.Proxy.Region) {
		return errors.New("a region has letters, digits, '.', '_', ':' and '-' only")
	}
	if e.Tier < 0 || e.Tier > MaxTier {
		return fmt.Errorf("a tier is a number from 0 to %d", MaxTier)
	}
	for _, t := range e.Proxy.Tags {
		if !isWord(t) {
			return errors.New("a tag has letters, digits, '.', '_', ':' and '-' only")
		}
	}
	return nil
}

// isWord reports whether s can stand in a packed value and in a set's name.
func isWord(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._:-", r):
		default:
			return false
		}
	}
	return true
}
