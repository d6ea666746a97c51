package proxypool

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Release ends the lease: the first one frees its slots, takes the health sample
// and leaves the tombstone; later ones only answer. An unknown id becomes a
// tombstone, so that an acquire which arrives late is refused. Never ErrStale.
//
// Where Redis' reply to the first release was lost, the client's own repetition
// of it finds First false; the sample was taken once all the same.
func (p *Pool) Release(ctx context.Context, r ReleaseRequest) (Released, error) {
	if err := checkField("lease id", r.LeaseID); err != nil {
		return Released{}, err
	}
	return p.released(r, p.run(ctx, p.scripts.release, releaseArgs(r)...))
}

// ReleaseOn queues a release on a pipeline. The function returned gives its
// result after Exec, whose own error may be this release's NOSCRIPT and then
// means nothing: the function runs the script again by itself.
func (p *Pool) ReleaseOn(ctx context.Context, pipe redis.Pipeliner, r ReleaseRequest) func(context.Context) (Released, error) {
	if err := checkField("lease id", r.LeaseID); err != nil {
		return func(context.Context) (Released, error) { return Released{}, err }
	}
	cmd := p.scripts.release.EvalSha(ctx, pipe, p.keys, releaseArgs(r)...)
	return func(ctx context.Context) (Released, error) {
		if err := cmd.Err(); err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			return p.Release(ctx, r)
		}
		return p.released(r, cmd)
	}
}

func releaseArgs(r ReleaseRequest) []any {
	return []any{r.LeaseID, string(r.Verdict.Proxy), string(r.Verdict.Pair), string(r.Verdict.Reason), max(r.Verdict.LatencyMS, 0)}
}

func (p *Pool) released(r ReleaseRequest, cmd *redis.Cmd) (Released, error) {
	reply, err := cmd.StringSlice()
	if err != nil {
		return Released{}, fmt.Errorf("release lease: %w", err)
	}
	if len(reply) != 3 {
		return Released{}, fmt.Errorf("release lease: %w", ErrReply)
	}
	out := Released{First: reply[0] == "1"}
	if reply[1] == "1" {
		out.Outcome = []byte(reply[2])
	}
	if out.First {
		p.opts.Observer.Released(r.Verdict)
	}
	return out, nil
}
