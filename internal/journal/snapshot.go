package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	snapshotName  = "snapshot"
	snapshotMagic = "hfsnap1\n"

	// Pseudo-commands of a snapshot; no client's command is lower-case.
	cmdFrom  = "from"  // the segment that goes on from here
	cmdEnd   = "end"   // the last record
	cmdTTL   = "ttl"   // key, deadline in ns
	cmdField = "field" // key, hash field, deadline in ns

	chunk = 512 // words of one HSET, RPUSH, SADD, ZADD
)

// snapshot returns the state as the bytes of a snapshot file: the commands that
// make it. segment is the one that goes on from here;
// size is about what to expect.
func (e *engine) snapshot(at time.Time, seq uint64, segment int, size int64) ([]byte, error) {
	b := &builder{buf: append(make([]byte, 0, size), snapshotMagic...)}
	one := func(words ...string) {
		b.open(at, seq)
		b.add(words...)
		b.close()
	}
	many := func(name, key string, words []string) {
		for len(words) > 0 {
			n := min(chunk, len(words))
			one(append([]string{name, key}, words[:n]...)...)
			words = words[n:]
		}
	}
	one(cmdFrom, strconv.Itoa(segment))
	keys := e.redis.Keys() // expires what is due
	db := e.redis.DB(0)
	timed := false
	for _, key := range keys {
		switch t := db.Type(key); t {
		case "string":
			v, err := db.Get(key)
			if err != nil {
				return nil, fmt.Errorf("snapshot string: %w", err)
			}
			one("SET", key, v)
		case "hash":
			fields, err := db.HKeys(key)
			if err != nil {
				return nil, fmt.Errorf("snapshot hash: %w", err)
			}
			words := make([]string, 0, 2*len(fields))
			for _, f := range fields {
				words = append(words, f, db.HGet(key, f))
			}
			many("HSET", key, words)
			for _, f := range fields {
				if ttl := db.HTTL(key, f); ttl > 0 {
					timed = true
					one(cmdField, key, f, deadline(at, ttl))
				}
			}
		case "list":
			l, err := db.List(key)
			if err != nil {
				return nil, fmt.Errorf("snapshot list: %w", err)
			}
			many("RPUSH", key, l)
		case "set":
			m, err := db.Members(key)
			if err != nil {
				return nil, fmt.Errorf("snapshot set: %w", err)
			}
			many("SADD", key, m)
		case "zset":
			z, err := db.SortedSet(key)
			if err != nil {
				return nil, fmt.Errorf("snapshot sorted set: %w", err)
			}
			words := make([]string, 0, 2*len(z))
			for m, score := range z {
				words = append(words, strconv.FormatFloat(score, 'g', -1, 64), m)
			}
			many("ZADD", key, words)
		default:
			return nil, fmt.Errorf("snapshot: a key of type %q", t)
		}
		if ttl := db.TTL(key); ttl > 0 {
			timed = true
			one(cmdTTL, key, deadline(at, ttl))
		}
	}
	one(cmdEnd)
	e.deadlines = timed
	return b.buf, nil
}

func deadline(at time.Time, ttl time.Duration) string {
	return strconv.FormatInt(at.Add(ttl).UnixNano(), 10)
}

// writeSnapshot replaces the snapshot file, atomically and durably.
func writeSnapshot(dir string, data []byte) error {
	tmp := filepath.Join(dir, snapshotName+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write snapshot: %w", errors.Join(err, os.Remove(tmp)))
	}
	if err := os.Rename(tmp, filepath.Join(dir, snapshotName)); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return syncDir(dir)
}

// compactLog writes the state as a snapshot and drops the segments before it.
// Commands wait while the state is copied, not while it is written.
func (s *Server) compactLog() error {
	var data []byte
	var first int
	err := s.log.hold(func() error {
		if s.engine == nil {
			return errors.New("no engine")
		}
		s.advance()
		var err error
		first = s.log.index + 1
		if data, err = s.engine.snapshot(s.clock.pinned, s.log.seq, first, s.snapshotSize+s.log.off); err != nil {
			return err
		}
		s.snapshotSize = int64(len(data))
		return s.log.rotate()
	})
	if err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	if err := writeSnapshot(s.dir, data); err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	return dropSegments(s.dir, first)
}

// dropSegments removes the segments before first.
func dropSegments(dir string, first int) error {
	all, err := segments(dir)
	if err != nil {
		return err
	}
	for _, index := range all {
		if index >= first {
			break
		}
		if err := os.Remove(filepath.Join(dir, segmentName(index))); err != nil {
			return fmt.Errorf("drop journal: %w", err)
		}
	}
	return nil
}
