package proxypool

import "errors"

// ErrStale says that a lease is not, or no longer, the caller's: it expired, was
// released, or another execution superseded it. The caller aborts its request.
var ErrStale = errors.New("proxypool: lease is stale")
