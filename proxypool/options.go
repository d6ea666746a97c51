package proxypool

import "time"

// Options of a Pool. All clients of one Redis must agree on them.
type Options struct {
	// Prefix of all keys; it must hold one hash tag. Default DefaultPrefix.
	Prefix string
	// TTL is a lease's lifetime without renewal. Default DefaultTTL (45 s).
	TTL time.Duration
	// Margin is how long before Redis would end it a holder stops trusting its
	// lease. Default TTL/9 (5 s).
	Margin time.Duration
	// TombstoneKeep is how long an ended lease still answers. Default 24 h.
	TombstoneKeep time.Duration
	// TurnGrace is how long a host's turn waits for its claimant. Default 5 s.
	TurnGrace time.Duration
	// Patience is how long an acquire would rather wait for a proxy that the URL
	// has not used than take one to avoid. Default 10 s.
	Patience time.Duration
	// SessionTTL is how long a session keeps its proxy after its last grant.
	// Default 30 min.
	SessionTTL time.Duration
	// NoProxyWait is the wait that is answered when no proxy is eligible. Default 30 s.
	NoProxyWait time.Duration
	// Observer is told what the pool does. Default: nobody.
	Observer Observer
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.TTL <= 0 {
		o.TTL = DefaultTTL
	}
	if o.Margin <= 0 {
		o.Margin = o.TTL / 9
	}
	if o.TombstoneKeep <= 0 {
		o.TombstoneKeep = 24 * time.Hour
	}
	if o.TurnGrace <= 0 {
		o.TurnGrace = 5 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 10 * time.Second
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = 30 * time.Minute
	}
	if o.NoProxyWait <= 0 {
		o.NoProxyWait = 30 * time.Second
	}
	if o.Observer == nil {
		o.Observer = unobserved{}
	}
	return o
}
