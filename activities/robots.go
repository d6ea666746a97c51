package activities

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
	"holdfast/internal/fetch"
	"holdfast/internal/robots"
	"holdfast/proxypool"
)

const (
	// robotsLock bounds one fetch of robots.txt; others wait for it.
	robotsLock = 45 * time.Second
	robotsPoll = 200 * time.Millisecond
	// robotsAge is how long a worker goes by what it read from Redis.
	robotsAge = time.Minute
	// robotsKept and robotsBytes are the number of origins that a worker remembers
	// for a user agent, and the memory that they take; shelvesKept the number of
	// user agents.
	robotsKept  = 4096
	robotsBytes = 16 << 20
	shelvesKept = 8
)

// robotsRuling is what robots.txt says about a pass: an outcome to end with, or
// the crawl-delay to keep.
type robotsRuling struct {
	outcome *crawl.Outcome
	delay   time.Duration
}

// robots obeys the target's robots.txt (RFC 9309). It is read once per origin and
// day, over all workers, through a proxy, and that request takes a turn at the
// host as any other does.
func (p *pass) robots(ctx context.Context, target *url.URL) (robotsRuling, error) {
	origin := crawl.Origin(target)
	shelf := p.a.robots.of(p.campaign.Spec.UserAgent)
	for left := patience; ; left -= robotsPoll {
		entry, ok, err := shelf.get(ctx, origin)
		if err != nil {
			return robotsRuling{}, err
		}
		if ok {
			return p.obey(entry, target), nil
		}
		locked, err := shelf.store.Lock(ctx, origin, p.holder, robotsLock)
		if err != nil {
			return robotsRuling{}, err
		}
		if locked {
			return p.readRobots(ctx, shelf, origin, target)
		}
		if left <= 0 {
			return robotsWait(patience), nil
		}
		if err := sleep(ctx, robotsPoll); err != nil {
			return robotsRuling{}, err
		}
	}
}

func robotsWait(d time.Duration) robotsRuling {
	return robotsRuling{outcome: &crawl.Outcome{Class: crawl.Deferred, Why: crawl.WaitRobots, WaitMS: ceilMS(d)}}
}

// obey applies what is known of the origin to the target, and keeps it for the
// requests to come.
func (p *pass) obey(e robots.Entry, target *url.URL) robotsRuling {
	if e.Access == robots.Closed {
		return robotsWait(max(e.Left, time.Second)) // disallowed for now, asked again later
	}
	if !e.Allowed(target.RequestURI()) {
		return robotsRuling{outcome: &crawl.Outcome{Class: crawl.RobotsDenied, Reason: crawl.ReasonRobotsDenied}}
	}
	p.site = &siteRules{origin: crawl.Origin(target), entry: e}
	delay, _ := e.CrawlDelay()
	if delay > p.campaign.Spec.Politeness.CrawlDelayMax {
		return robotsRuling{outcome: &crawl.Outcome{Class: crawl.RobotsDenied, Reason: crawl.ReasonCrawlDelayTooLong}}
	}
	return robotsRuling{delay: delay}
}

// readRobots fetches robots.txt under a lease of its own and stores what it means.
func (p *pass) readRobots(ctx context.Context, shelf *robotsShelf, origin string, target *url.URL) (ruling robotsRuling, err error) {
	defer func() {
		// A lock that stays would hold every URL of the origin back for its time.
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
		defer cancel()
		if e := shelf.store.Unlock(free, origin, p.holder); e != nil && err == nil {
			err = e
		}
	}()
	// Somebody may have read it between our look and our lock.
	if entry, ok, err := shelf.get(ctx, origin); err != nil || ok {
		return p.obey(entry, target), err
	}
	grant, out, err := p.acquire(ctx, crawl.RobotsLease(p.in.LeaseID), crawl.HostKey(target), p.limits())
	switch {
	case grant == nil && err == nil && out.Class == crawl.Ended:
		// An earlier execution of this pass was here and died before it told what it
		// read. It asked for robots.txt, not for the URL: the next pass asks again.
		return robotsWait(time.Second), nil
	case grant == nil:
		return robotsRuling{outcome: out}, err
	}
	outcome, body, err := p.fetchRobots(ctx, grant, target)
	if err != nil {
		return robotsRuling{}, err
	}
	entry, ok := robots.Judge(outcome, body, p.campaign.Spec.UserAgent)
	switch {
	case ok:
	case outcome.Class == crawl.Deferred: // its own redirect's turn, a closed host
		return robotsRuling{outcome: &crawl.Outcome{Class: crawl.Deferred, Why: outcome.Why, WaitMS: outcome.WaitMS}}, nil
	default: // the proxy's fault, no such host, aborted, handed on: the URL's own
		return robotsRuling{outcome: &outcome}, nil
	}
	if err := shelf.put(ctx, origin, entry); err != nil {
		return robotsRuling{}, err
	}
	entry.Left = entry.TTL()
	return p.obey(entry, target), nil
}

// fetchRobots makes the exchange and releases its lease.
func (p *pass) fetchRobots(ctx context.Context, grant *proxypool.Grant, target *url.URL) (crawl.Outcome, []byte, error) {
	var body robots.Buffer
	request := fetch.Request{
		Method: "GET", URL: (&url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/robots.txt"}).String(),
		Proxy: grant.Proxy, AllowPrivate: p.campaign.Spec.AllowPrivate,
		Limits:  fetch.Limits{Total: crawl.DefaultTimeout, MaxRedirects: robots.MaxRedirects},
		NewBody: func() (fetch.Body, error) { return &body, nil },
	}
	request.UserAgent, request.From = identity(p.campaign.Spec, p.a.Version)
	held := p.hold(ctx, grant)
	defer held.letGo()
	p.hooks(&request, held, false)
	started := time.Now()
	result := p.a.Exchange.Do(held.ctx, request)
	out := result.Outcome
	out.Worker, out.StartedMS = p.a.Worker, started.UnixMilli()
	if grant.Proxy != nil {
		out.Proxy, out.Region = grant.Proxy.ID, grant.Proxy.Region
	}
	var err error
	switch {
	case out.Class == crawl.Canceled || (result.Err != nil && held.ctx.Err() != nil):
		out, err = p.broken(held, out)
	case result.Err != nil:
		out, err = p.unserved(held, out, result.Err)
	default:
		err = p.closeHosts(ctx)
	}
	if err != nil {
		return crawl.Outcome{}, nil, err
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	_, err = p.a.Pool.Release(release, proxypool.ReleaseRequest{LeaseID: grant.LeaseID, Verdict: crawl.VerdictOf(out)})
	if err != nil {
		return crawl.Outcome{}, nil, fmt.Errorf("release robots lease: %w", err)
	}
	return out, body.Bytes(), nil
}

// robotsShelves keep a store and a small memory for each user agent.
type robotsShelves struct {
	redis   redis.UniversalClient
	mu      sync.Mutex
	byAgent map[string]*robotsShelf
}

type robotsShelf struct {
	store *robots.Store
	mu    sync.Mutex
	known map[string]knownRobots
	bytes int // of known
}

type knownRobots struct {
	entry robots.Entry
	until time.Time
}

// size is what k takes; nothing where there is no entry.
func (k knownRobots) size() int {
	if k.until.IsZero() {
		return 0
	}
	return k.entry.Size()
}

func (s *robotsShelves) of(userAgent string) *robotsShelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	shelf, ok := s.byAgent[userAgent]
	if !ok {
		if len(s.byAgent) >= shelvesKept {
			clear(s.byAgent)
		}
		shelf = &robotsShelf{store: robots.NewStore(s.redis, userAgent), known: map[string]knownRobots{}}
		s.byAgent[userAgent] = shelf
	}
	return shelf
}

func (s *robotsShelf) get(ctx context.Context, origin string) (robots.Entry, bool, error) {
	s.mu.Lock()
	k, ok := s.known[origin]
	s.mu.Unlock()
	if ok && time.Now().Before(k.until) {
		return k.entry, true, nil
	}
	entry, ok, err := s.store.Get(ctx, origin)
	if err != nil || !ok {
		return robots.Entry{}, false, err
	}
	s.remember(origin, entry, entry.Left)
	return entry, true, nil
}

func (s *robotsShelf) put(ctx context.Context, origin string, e robots.Entry) error {
	if err := s.store.Put(ctx, origin, e, e.TTL()); err != nil {
		return err
	}
	s.remember(origin, e, e.TTL())
	return nil
}

// remember keeps an entry for a minute; one that closes the origin not at all, so
// that its end is seen at once.
func (s *robotsShelf) remember(origin string, e robots.Entry, left time.Duration) {
	if e.Access == robots.Closed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= robotsKept || s.bytes+e.Size() > robotsBytes {
		clear(s.known)
		s.bytes = 0
	}
	s.bytes += e.Size() - s.known[origin].size()
	s.known[origin] = knownRobots{entry: e, until: time.Now().Add(min(left, robotsAge))}
}
