package proxypool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ProxyState is what a proxy is good for.
type ProxyState string

// The states of a proxy.
const (
	StateActive      ProxyState = "active"
	StateCooling     ProxyState = "cooling"     // after failures; comes back by itself
	StateDraining    ProxyState = "draining"    // leased no more; by an operator
	StateQuarantined ProxyState = "quarantined" // until an operator restores it
	StateExpired     ProxyState = "expired"
	StateRemoving    ProxyState = "removing" // goes with its last lease
)

// Info is what is known of a proxy. It holds no credentials.
type Info struct {
	ID     string     `json:"id"`
	State  ProxyState `json:"state"`
	Scheme string     `json:"scheme"`
	// Address is host:port; Auth says whether a user name goes with it.
	Address string   `json:"address"`
	Auth    bool     `json:"auth"`
	Region  string   `json:"region,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Tier    int      `json:"tier,omitempty"`
	// Gateway says that each lease or session is another way out of it.
	Gateway bool   `json:"gateway,omitempty"`
	Source  string `json:"source,omitempty"`
	// InUse is the number of its leases, of at most MaxConcurrency.
	InUse          int           `json:"in_use"`
	MaxConcurrency int           `json:"max_concurrency"`
	MinReuse       time.Duration `json:"min_reuse,omitempty"`
	Expires        time.Time     `json:"expires,omitzero"`
	// CoolingUntil is zero unless State is cooling.
	CoolingUntil time.Time `json:"cooling_until,omitzero"`
	// Successes, Failures and Unclear count its leases' samples since it was
	// added; Consecutive the failures in a row.
	Successes   int64 `json:"successes"`
	Failures    int64 `json:"failures"`
	Unclear     int64 `json:"unclear"`
	Consecutive int   `json:"consecutive"`
	// Suspected says that its credentials were refused at another proxy within 24 h
	// and it has not succeeded since: it has one lease at a time.
	Suspected bool `json:"suspected,omitempty"`
	// Score rates it from 0 to 1000 by all Windows at its last sample; 750 before
	// the first.
	Score   int     `json:"score"`
	Windows Windows `json:"windows"`
	// Reason is the last failure's, or "operator"; empty after a success.
	Reason string `json:"reason,omitempty"`
	// LatencyMS is the moving average of the time until the tunnel stood.
	LatencyMS int64     `json:"latency_ms"`
	LastUsed  time.Time `json:"last_used,omitzero"`
	// Since is when the state was last set.
	Since time.Time `json:"since"`
}

// Proxies returns all proxies, by id.
func (p *Pool) Proxies(ctx context.Context) ([]Info, error) {
	pipe := p.rdb.Pipeline()
	states := pipe.HGetAll(ctx, p.keys[keyProxies])
	configs := pipe.HGetAll(ctx, p.keys[keyConfig])
	meta := pipe.HGetAll(ctx, p.keys[keyMeta])
	clock := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("list proxies: %w", err)
	}
	infos := make([]Info, 0, len(states.Val()))
	for id, state := range states.Val() {
		info, err := readInfo(id, state, configs.Val()[id], meta.Val(), clock.Val())
		if err != nil {
			return nil, fmt.Errorf("read proxy %s: %w", id, err)
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return infos, nil
}

// Proxy returns one proxy, ErrNoProxy if there is none of that id.
func (p *Pool) Proxy(ctx context.Context, id string) (Info, error) {
	pipe := p.rdb.Pipeline()
	state := pipe.HGet(ctx, p.keys[keyProxies], id)
	conf := pipe.HGet(ctx, p.keys[keyConfig], id)
	meta := pipe.HGetAll(ctx, p.keys[keyMeta])
	clock := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); errors.Is(err, redis.Nil) {
		return Info{}, fmt.Errorf("%w: %s", ErrNoProxy, id)
	} else if err != nil {
		return Info{}, fmt.Errorf("read proxy %s: %w", id, err)
	}
	info, err := readInfo(id, state.Val(), conf.Val(), meta.Val(), clock.Val())
	if err != nil {
		return Info{}, fmt.Errorf("read proxy %s: %w", id, err)
	}
	return info, nil
}

// readInfo reads the packed state that scripts/lib_proxy.lua describes.
func readInfo(id, packed, conf string, suspects map[string]string, now time.Time) (Info, error) {
	f := strings.Split(packed, "|")
	if len(f) < 28 {
		return Info{}, fmt.Errorf("%w: proxy state", ErrReply)
	}
	c, err := readConfig(conf)
	if err != nil {
		return Info{}, err
	}
	num := func(i int) int64 {
		n, perr := strconv.ParseInt(f[i], 10, 64)
		if perr != nil && err == nil {
			err = fmt.Errorf("%w: proxy state", ErrReply)
		}
		return n
	}
	info := Info{
		ID: id, Scheme: c.Scheme, Address: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), Auth: len(c.Username) > 0,
		Region: c.Region, Tags: c.Tags, Source: c.Source, Tier: int(num(25)), Gateway: f[11] == "1",
		InUse: int(num(1)), MaxConcurrency: int(num(2)), MinReuse: time.Duration(num(14)) * time.Millisecond,
		Expires: at(num(5)), Successes: num(15), Failures: num(16), Unclear: num(17), Consecutive: int(num(7)),
		Reason: f[20], LatencyMS: num(13), LastUsed: at(num(6)), Since: at(num(24)), Score: int(num(8)),
	}
	if info.Windows, err = readRing(f[26], now); err != nil {
		return Info{}, err
	}
	info.Suspected = suspected(suspects["c|"+f[12]], num(10), now)
	switch f[0] {
	case "d":
		info.State = StateDraining
	case "q":
		info.State = StateQuarantined
	case "x":
		info.State = StateRemoving
	default:
		info.State = StateActive
		if cool := at(num(4)); cool.After(now) {
			info.State, info.CoolingUntil = StateCooling, cool
		}
		if !info.Expires.IsZero() && !info.Expires.After(now) {
			info.State = StateExpired
		}
	}
	return info, err
}

// at returns the time of Unix milliseconds, zero for 0.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
