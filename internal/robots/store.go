package robots

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// prefix names the keys; its number is the schema's.
const prefix = "hf1:robots:"

//go:embed scripts/get.lua
var getSource string

//go:embed scripts/put.lua
var putSource string

//go:embed scripts/lock.lua
var lockSource string

//go:embed scripts/unlock.lua
var unlockSource string

// Store keeps entries in Redis for one crawler, and a lock an origin so that one
// pass at a time asks for a robots.txt. Expiry is judged by Redis' clock and by
// deadlines stored with the values. Every call is one command on one key; every
// error means that Redis did not answer as it should.
type Store struct {
	rdb   redis.Scripter
	token string

	get, put, lock, unlock *redis.Script
}

// NewStore returns the store of the crawler that userAgent names.
func NewStore(rdb redis.UniversalClient, userAgent string) *Store {
	return &Store{
		rdb:   rdb,
		token: ProductToken(userAgent),
		get:   redis.NewScript(getSource), put: redis.NewScript(putSource),
		lock: redis.NewScript(lockSource), unlock: redis.NewScript(unlockSource),
	}
}

func (s *Store) entryKey(origin string) string { return prefix + "entry:" + s.token + ":" + origin }
func lockKey(origin string) string             { return prefix + "lock:" + origin }

// Get returns what is known of an origin (crawl.Origin), false if nothing is.
// What cannot be read, of another version for instance, counts as nothing.
func (s *Store) Get(ctx context.Context, origin string) (Entry, bool, error) {
	got, err := s.get.Run(ctx, s.rdb, []string{s.entryKey(origin)}).Slice()
	if errors.Is(err, redis.Nil) {
		return Entry{}, false, nil
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("get robots entry: %w", err)
	}
	if len(got) != 2 {
		return Entry{}, false, nil
	}
	left, ok1 := got[0].(int64)
	data, ok2 := got[1].(string)
	var e Entry
	if !ok1 || !ok2 || e.UnmarshalBinary([]byte(data)) != nil {
		return Entry{}, false, nil
	}
	e.Left = time.Duration(left) * time.Millisecond
	return e, true, nil
}

// Put keeps e for ttl (Entry.TTL says how long is right).
func (s *Store) Put(ctx context.Context, origin string, e Entry, ttl time.Duration) error {
	data, err := e.MarshalBinary()
	if err != nil {
		return err
	}
	if err := s.put.Run(ctx, s.rdb, []string{s.entryKey(origin)}, ttl.Milliseconds(), data).Err(); err != nil {
		return fmt.Errorf("put robots entry: %w", err)
	}
	return nil
}

// Lock takes the origin's lock for ttl, or extends it if holder has it already;
// false: another one has it.
func (s *Store) Lock(ctx context.Context, origin, holder string, ttl time.Duration) (bool, error) {
	n, err := s.lock.Run(ctx, s.rdb, []string{lockKey(origin)}, holder, ttl.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("lock robots of origin: %w", err)
	}
	return n == 1, nil
}

// Unlock gives the lock back; a no-op if holder has it no longer.
func (s *Store) Unlock(ctx context.Context, origin, holder string) error {
	if err := s.unlock.Run(ctx, s.rdb, []string{lockKey(origin)}, holder).Err(); err != nil {
		return fmt.Errorf("unlock robots of origin: %w", err)
	}
	return nil
}
