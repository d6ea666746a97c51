package proxypool

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoProxy says that the pool has no proxy of that id.
var ErrNoProxy = errors.New("proxypool: no such proxy")

// Quarantine leases the proxies no more until they are restored. What they
// carry now goes on. ErrNoProxy, and nothing changed, if an id is not known; the
// same holds for the three below.
func (p *Pool) Quarantine(ctx context.Context, ids ...string) error {
	return p.admin(ctx, "quarantine", ids)
}

// Restore makes the proxies active, whatever they were, and forgets their
// failures in a row.
func (p *Pool) Restore(ctx context.Context, ids ...string) error {
	return p.admin(ctx, "restore", ids)
}

// Drain leases the proxies no more; importing or restoring them brings them back.
func (p *Pool) Drain(ctx context.Context, ids ...string) error {
	return p.admin(ctx, "drain", ids)
}

// Remove deletes the proxies, health and id too; one in use goes with its last lease.
func (p *Pool) Remove(ctx context.Context, ids ...string) error {
	return p.admin(ctx, "remove", ids)
}

func (p *Pool) admin(ctx context.Context, op string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	args := []any{op}
	for _, id := range ids {
		args = append(args, id)
	}
	missing, err := p.run(ctx, p.scripts.admin, args...).StringSlice()
	if err != nil {
		return fmt.Errorf("%s proxies: %w", op, err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrNoProxy, strings.Join(missing, ", "))
	}
	return nil
}
