package proxypool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// maxClose bounds how long a host can be closed in one call.
const maxClose = 10 * 365 * 24 * time.Hour

// HostInfo is a host's slot.
type HostInfo struct {
	Host string `json:"host"`
	// Turn is how long from now its next free turn is; 0: now.
	Turn time.Duration `json:"turn"`
	// NotBefore is for how long the host is closed; 0: open.
	NotBefore time.Duration `json:"not_before"`
	// Open is the number of leases at the host, Waiting of turns reserved there.
	Open    int `json:"open"`
	Waiting int `json:"waiting"`
	// Answered, Faults and Blocks count the last eight proxies that were here within
	// ten minutes by their latest outcome: this is the evidence for and against it.
	Answered int `json:"answered"`
	Faults   int `json:"faults"`
	Blocks   int `json:"blocks"`
}

// CloseHost grants nothing at the host for the time given. It never shortens an
// earlier closing, and moves the turns reserved there, order and spacing kept.
func (p *Pool) CloseHost(ctx context.Context, host string, after time.Duration) error {
	if err := checkHost(host); err != nil {
		return err
	}
	if err := p.run(ctx, p.scripts.closeHost, host, millis(min(after, maxClose))).Err(); err != nil {
		return fmt.Errorf("close host: %w", err)
	}
	return nil
}

// Turns returns how long from now each host's next free turn is (0: now),
// not-before and the turns already reserved included.
func (p *Pool) Turns(ctx context.Context, hosts []string) ([]time.Duration, error) {
	infos, err := p.hosts(ctx, hosts)
	if err != nil {
		return nil, err
	}
	turns := make([]time.Duration, len(infos))
	for i, info := range infos {
		turns[i] = info.Turn
	}
	return turns, nil
}

// Hosts returns the slots of the hosts named, in that order; of all hosts that
// the pool knows, sorted, if none is named.
func (p *Pool) Hosts(ctx context.Context, hosts ...string) ([]HostInfo, error) {
	if len(hosts) == 0 {
		all, err := p.rdb.HKeys(ctx, p.keys[keyHosts]).Result()
		if err != nil {
			return nil, fmt.Errorf("list hosts: %w", err)
		}
		slices.Sort(all)
		hosts = all
	}
	return p.hosts(ctx, hosts)
}

func (p *Pool) hosts(ctx context.Context, hosts []string) ([]HostInfo, error) {
	infos := make([]HostInfo, 0, len(hosts))
	for chunk := range slices.Chunk(hosts, 500) {
		args := make([]any, len(chunk))
		for i, h := range chunk {
			args[i] = h
		}
		reply, err := p.run(ctx, p.scripts.hosts, args...).Slice()
		if err != nil {
			return nil, fmt.Errorf("read hosts: %w", err)
		}
		if len(reply) != len(chunk) {
			return nil, fmt.Errorf("read hosts: %w", ErrReply)
		}
		for i, row := range reply {
			n, err := ints(row, 7)
			if err != nil {
				return nil, fmt.Errorf("read hosts: %w", err)
			}
			infos = append(infos, HostInfo{
				Host: chunk[i],
				Turn: time.Duration(n[0]) * time.Millisecond, NotBefore: time.Duration(n[1]) * time.Millisecond,
				Open: int(n[2]), Waiting: int(n[3]), Answered: int(n[4]), Faults: int(n[5]), Blocks: int(n[6]),
			})
		}
	}
	return infos, nil
}

// ints reads a row of n integers from a script's reply.
func ints(row any, n int) ([]int64, error) {
	fields, ok := row.([]any)
	if !ok || len(fields) != n {
		return nil, ErrReply
	}
	out := make([]int64, n)
	for i, f := range fields {
		s, _ := f.(string)
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %q", ErrReply, s)
		}
		out[i] = v
	}
	return out, nil
}
