package frontier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
)

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName returns ErrName for a name that a campaign cannot have.
func CheckName(name string) error {
	if !nameRule.MatchString(name) {
		return ErrName
	}
	return nil
}

// CreateRun starts a run of campaign spec.Name in state loading, or goes on with
// one that a killed starter left: resumed is true if the latest run still takes
// the same input, and its Batches says what is loaded.
//
// Errors: ErrRunOpen when the latest run has not ended, ErrInputDiffers when it is
// still loading other input, ErrRunEnded when it has ended and opts ask for no new
// one. With these three the RunInfo is that of the latest run.
func (s *Store) CreateRun(ctx context.Context, spec crawl.Spec, src Source, opts CreateOptions) (info RunInfo, resumed bool, err error) {
	if err := CheckName(spec.Name); err != nil {
		return RunInfo{}, false, err
	}
	number, err := s.latest(ctx, spec.Name)
	if err != nil {
		return RunInfo{}, false, fmt.Errorf("create run: %w", err)
	}
	if number > 0 {
		info, err := s.Run(ctx, crawl.RunName(spec.Name, number))
		switch {
		case errors.Is(err, ErrNoRun):
			// A starter died between taking the number and creating the run.
			return s.create(ctx, spec, src, number)
		case err != nil:
			return RunInfo{}, false, err
		case info.State == RunFinished || info.State == RunCanceled:
			if !opts.NewRun {
				return info, false, ErrRunEnded
			}
		default:
			return goOn(info, src)
		}
	}
	number, err = s.scripts.alloc.Run(ctx, s.rdb, []string{s.regKey("campaigns"), s.regKey("runs")},
		spec.Name, number, crawl.RunName(spec.Name, number+1)).Int()
	if err != nil {
		return RunInfo{}, false, fmt.Errorf("number run: %w", err)
	}
	return s.create(ctx, spec, src, number)
}

func (s *Store) create(ctx context.Context, spec crawl.Spec, src Source, number int) (RunInfo, bool, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return RunInfo{}, false, fmt.Errorf("encode spec: %w", err)
	}
	run := crawl.RunName(spec.Name, number)
	what, err := s.word(ctx, s.scripts.create, run, spec.Name, number, b, src.Digest, src.Label, src.Total)
	if err != nil {
		return RunInfo{}, false, fmt.Errorf("create run %s: %w", run, err)
	}
	info, err := s.Run(ctx, run)
	if err != nil {
		return RunInfo{}, false, err
	}
	if what == "old" {
		// Another starter, or this call before its reply was lost, was first.
		return goOn(info, src)
	}
	return info, false, nil
}

// goOn decides whether the input src may go on into an open run.
func goOn(info RunInfo, src Source) (RunInfo, bool, error) {
	switch {
	case info.Sealed || info.State == RunCanceling:
		return info, false, ErrRunOpen
	case info.Source.Digest != src.Digest:
		return info, false, ErrInputDiffers
	}
	return info, true, nil
}

// latest returns a campaign's latest run number, 0 for none.
func (s *Store) latest(ctx context.Context, campaign string) (int, error) {
	n, err := s.rdb.HGet(ctx, s.regKey("campaigns"), campaign).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// Latest returns a campaign's latest run, ErrNoRun if it has none.
func (s *Store) Latest(ctx context.Context, campaign string) (RunInfo, error) {
	n, err := s.latest(ctx, campaign)
	if err != nil {
		return RunInfo{}, fmt.Errorf("find campaign %s: %w", campaign, err)
	}
	if n == 0 {
		return RunInfo{}, ErrNoRun
	}
	return s.Run(ctx, crawl.RunName(campaign, n))
}

// Resolve returns the run that a person means: the latest of a campaign of that
// name, else the run of that name.
func (s *Store) Resolve(ctx context.Context, nameOrRun string) (RunInfo, error) {
	info, err := s.Latest(ctx, nameOrRun)
	if !errors.Is(err, ErrNoRun) {
		return info, err
	}
	return s.Run(ctx, nameOrRun)
}

// Runs returns every run, oldest first.
func (s *Store) Runs(ctx context.Context) ([]RunInfo, error) {
	names, err := s.rdb.LRange(ctx, s.regKey("runs"), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return s.infos(ctx, names)
}

// RegisterSink registers the deployment's results URL; the first one wins. It
// returns the one that is registered, which a worker compares with its own.
func (s *Store) RegisterSink(ctx context.Context, url string) (registered string, err error) {
	if url == "" {
		return "", errors.New("register sink: empty URL")
	}
	// NX and the read apart: a sink once set is never changed, so no one comes between.
	if err := s.rdb.SetNX(ctx, s.regKey("sink"), url, 0).Err(); err != nil {
		return "", fmt.Errorf("register sink: %w", err)
	}
	return s.Sink(ctx)
}

// Sink returns the registered results URL, "" for none.
func (s *Store) Sink(ctx context.Context) (string, error) {
	url, err := s.rdb.Get(ctx, s.regKey("sink")).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read sink: %w", err)
	}
	return url, nil
}

// infos reads runs in one round trip, leaving out those that are not there.
func (s *Store) infos(ctx context.Context, runs []string) ([]RunInfo, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	metas := make([]*redis.SliceCmd, len(runs))
	sizes := make([]*redis.IntCmd, len(runs))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, run := range runs {
			k := s.keys(run)
			metas[i], sizes[i] = p.HMGet(ctx, k.meta, metaFields...), p.HLen(ctx, k.batches)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	var out []RunInfo
	for i, run := range runs {
		info, ok, err := parseMeta(metas[i].Val())
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", run, err)
		}
		if ok {
			info.Batches = int(sizes[i].Val())
			out = append(out, info)
		}
	}
	return out, nil
}

// atoi reads a number that may be missing.
func atoi(v any) int64 {
	s, _ := v.(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
