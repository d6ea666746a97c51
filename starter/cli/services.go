package cli

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/proxypool"
)

// needs says which services a command contacts.
type needs int

const (
	needRedis needs = iota
	needAll
)

// session holds the connections of one command.
type session struct {
	app      *App
	target   target
	rdb      *redis.Client
	temporal client.Client // nil with needRedis
	frontier *frontier.Store
	pool     *proxypool.Pool
}

// open contacts what the command needs, Redis first; an unreachable service is
// exit 3.
func (a *App) open(ctx context.Context, n needs) (*session, error) {
	t, err := a.target(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{app: a, target: t}
	if s.rdb, err = a.dialRedis(ctx, t); err != nil {
		return nil, err
	}
	if n == needAll {
		if s.temporal, err = a.dialTemporal(ctx, t); err != nil {
			s.close()
			return nil, err
		}
	}
	s.frontier = frontier.New(s.rdb, frontier.Options{})
	s.pool = proxypool.New(s.rdb, proxypool.Options{})
	return s, nil
}

func (s *session) close() {
	if s.temporal != nil {
		s.temporal.Close()
	}
	_ = s.rdb.Close() // nothing is buffered
}

// redisFailure turns an error of a call over a standing connection into what the
// user is to see.
func (s *session) redisFailure(err error) error {
	var known *Failure
	var answer redis.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled), errors.As(err, &answer):
		return err
	}
	return unreachable(err, s.app.startHint(s.target, "check that it runs, then run the same command again"),
		"Redis at %s went away: %s", s.target.redisURL, redisCause(err))
}

// resolve finds a run by its campaign's name (the latest run) or its own.
func (s *session) resolve(ctx context.Context, name string) (frontier.RunInfo, error) {
	info, err := s.frontier.Resolve(ctx, name)
	if errors.Is(err, frontier.ErrNoRun) {
		return info, refused("no_campaign", "see "+s.app.command("campaign list"), "there is no campaign %q", name)
	}
	if err != nil {
		return info, s.redisFailure(err)
	}
	return info, nil
}

// findURL finds a URL's state: in the run that name means, or in the newest run
// that knows it.
func (s *session) findURL(ctx context.Context, name, id, url string) (frontier.RunInfo, frontier.URLInfo, error) {
	var runs []frontier.RunInfo
	if name != "" {
		run, err := s.resolve(ctx, name)
		if err != nil {
			return run, frontier.URLInfo{}, err
		}
		runs = []frontier.RunInfo{run}
	} else {
		var err error
		if runs, err = s.frontier.Runs(ctx); err != nil {
			return frontier.RunInfo{}, frontier.URLInfo{}, s.redisFailure(err)
		}
		newestFirst(runs)
	}
	for _, run := range runs {
		info, err := s.frontier.URL(ctx, run.Name(), id)
		if err == nil {
			return run, info, nil
		}
		if !errors.Is(err, frontier.ErrNoURL) {
			return run, info, s.redisFailure(err)
		}
	}
	where := "no campaign knows %s"
	if name != "" {
		where = "campaign " + name + " does not know %s"
	}
	return frontier.RunInfo{}, frontier.URLInfo{}, refused("no_url",
		"give the URL as it stands in the list; see "+s.app.command("campaign list"), where, oneLine(url))
}

// selector is a campaign's choice of proxies as the pool reads it.
func selector(p crawl.ProxySpec) proxypool.Selector {
	return proxypool.Selector{Direct: p.Direct, Tags: p.Tags, Region: p.Region, MaxTier: p.MaxTier}
}
