package frontier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast/internal/crawl"
)

// countFields are the fields of a run's counts, in the order that parseCounts reads.
var countFields = []string{
	"accepted", "n:q", "n:r", "n:w", "n:c", "n:f", "n:s", "n:x",
	"bytes", "wire", "retries", "faults", "waits",
}

var metaFields = append([]string{
	"state", "campaign", "run", "spec", "digest", "label", "total", "created", "ended", "sealed",
}, countFields...)

const infoFields = 10

func parseCounts(v []any) Counts {
	return Counts{
		Accepted: atoi(v[0]), Queued: atoi(v[1]), Running: atoi(v[2]), Waiting: atoi(v[3]),
		Completed: atoi(v[4]), Failed: atoi(v[5]), Skipped: atoi(v[6]), Canceled: atoi(v[7]),
		Bytes: atoi(v[8]), WireBytes: atoi(v[9]), Retries: atoi(v[10]), ProxyFaults: atoi(v[11]), Waits: atoi(v[12]),
	}
}

func parseMeta(v []any) (info RunInfo, ok bool, err error) {
	if len(v) != len(metaFields) || v[0] == nil {
		return RunInfo{}, false, nil
	}
	str := func(i int) string { s, _ := v[i].(string); return s }
	info = RunInfo{
		Campaign: str(1), Run: int(atoi(v[2])), State: RunState(str(0)),
		Source:  Source{Digest: str(4), Label: str(5), Total: int(atoi(v[6]))},
		Created: time.UnixMilli(atoi(v[7])).UTC(),
		Sealed:  str(9) == "1",
		Counts:  parseCounts(v[infoFields:]),
	}
	if ended := atoi(v[8]); ended > 0 {
		info.Ended = time.UnixMilli(ended).UTC()
	}
	if err := json.Unmarshal([]byte(str(3)), &info.Spec); err != nil {
		return RunInfo{}, false, fmt.Errorf("decode spec: %w", err)
	}
	return info, true, nil
}

// Run returns what the registry knows of a run, ErrNoRun if it is not there.
func (s *Store) Run(ctx context.Context, run string) (RunInfo, error) {
	infos, err := s.infos(ctx, []string{run})
	if err != nil {
		return RunInfo{}, err
	}
	if len(infos) == 0 {
		return RunInfo{}, ErrNoRun
	}
	return infos[0], nil
}

// States returns the runs' states in the order asked, "" for a run that is not there.
func (s *Store) States(ctx context.Context, runs []string) ([]RunState, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	cmds := make([]*redis.StringCmd, len(runs))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, run := range runs {
			cmds[i] = p.HGet(ctx, s.keys(run).meta, "state")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read states: %w", err)
	}
	states := make([]RunState, len(runs))
	for i, c := range cmds {
		// Each is looked at: a missing run hides the error of a later command.
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("read states: %w", err)
		}
		states[i] = RunState(c.Val())
	}
	return states, nil
}

// Counts returns the run's counts of one moment: they add up to Accepted.
func (s *Store) Counts(ctx context.Context, run string) (Counts, error) {
	v, err := s.rdb.HMGet(ctx, s.keys(run).meta, append([]string{"state"}, countFields...)...).Result()
	if err != nil {
		return Counts{}, fmt.Errorf("read counts: %w", err)
	}
	if v[0] == nil {
		return Counts{}, ErrNoRun
	}
	return parseCounts(v[1:]), nil
}

// FailureCounts returns the number of failed URLs by reason.
func (s *Store) FailureCounts(ctx context.Context, run string) (map[crawl.Reason]int64, error) {
	m, err := s.rdb.HGetAll(ctx, s.keys(run).reasons).Result()
	if err != nil {
		return nil, fmt.Errorf("read failure counts: %w", err)
	}
	out := make(map[crawl.Reason]int64, len(m))
	for reason, n := range m {
		out[crawl.Reason(reason)] = atoi(n)
	}
	return out, nil
}

// Seal says that the run's input is complete; from then on it can finish. Idempotent.
func (s *Store) Seal(ctx context.Context, run string) error { return s.steer(ctx, run, "seal") }

// Pause stops claims. Idempotent; ErrRunEnded for a run that is canceling or over.
func (s *Store) Pause(ctx context.Context, run string) error { return s.steer(ctx, run, "pause") }

// Resume takes a paused run back to where it was. Idempotent; ErrRunEnded as Pause.
func (s *Store) Resume(ctx context.Context, run string) error { return s.steer(ctx, run, "resume") }

// Cancel sets the run's cancel flag: nothing more is claimed or added. Idempotent;
// ErrRunEnded for a run that has finished.
func (s *Store) Cancel(ctx context.Context, run string) error { return s.steer(ctx, run, "cancel") }

func (s *Store) steer(ctx context.Context, run, verb string) error {
	if _, err := s.word(ctx, s.scripts.steer, run, verb); err != nil {
		return fmt.Errorf("%s run %s: %w", verb, run, err)
	}
	return nil
}

// FinishIfIdle ends a sealed or canceling run in which nothing is queued, running
// or waiting; it reports whether the run has ended. Idempotent.
func (s *Store) FinishIfIdle(ctx context.Context, run string) (bool, error) {
	state, err := s.word(ctx, s.scripts.steer, run, "finish")
	if err != nil {
		return false, fmt.Errorf("finish run %s: %w", run, err)
	}
	return state == string(RunFinished) || state == string(RunCanceled), nil
}
