package journal

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// engine is the miniredis that holds the state, driven one command at a time by
// whoever holds the server's lock.
type engine struct {
	redis *miniredis.Miniredis
	srv   *server.Server

	pass      bool // the next dispatch is ours: let it through to its handler
	deadlines bool // some key may have a deadline
	rec       *builder
}

// newEngine starts a miniredis without a listener.
func newEngine(rec *builder) (*engine, error) {
	m := miniredis.NewMiniRedis()
	c, err := m.Dial() // starts it; the connection itself is not wanted
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if err := c.Close(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	e := &engine{redis: m, srv: m.Server(), rec: rec}
	e.srv.SetPreHook(e.hook)
	return e, nil
}

// close lets go of the engine. It takes no lock of miniredis': a panicked one
// still holds it.
func (e *engine) close() {
	e.redis.CtxCancel()
	e.srv.Close()
}

// run dispatches a command to its handler, past the hook.
func (e *engine) run(p *server.Peer, words []string) {
	e.pass = true
	e.srv.Dispatch(p, words)
	e.pass = false
}

// dispatch runs a command for a client and adds what it changes to the open record.
func (e *engine) dispatch(p *server.Peer, words []string) {
	name := words[0]
	switch k := kinds[name]; k {
	case unsupported:
		p.WriteError(refusal(name))
	case random:
		e.runRandom(p, words)
	case write:
		e.note(words)
		e.run(p, words)
	default:
		e.run(p, words)
	}
}

// hook sees every dispatch. Ours pass; the others are a script's calls.
func (e *engine) hook(p *server.Peer, cmd string, args ...string) bool {
	if e.pass {
		e.pass = false
		return false
	}
	words := append([]string{cmd}, args...)
	switch kinds[cmd] {
	case read:
		return false
	case write:
		e.note(words)
		return false
	case random:
		e.runRandom(p, words)
	default:
		p.WriteError(refusal(cmd) + " in a script")
	}
	return true
}

func (e *engine) note(words []string) {
	e.deadlines = e.deadlines || setsDeadline(words)
	e.rec.add(words...)
}

// runRandom runs a SPOP and records the SREM that it came to.
func (e *engine) runRandom(p *server.Peer, words []string) {
	var reply bytes.Buffer
	w := bufio.NewWriter(&reply)
	shadow := server.NewPeer(w)
	shadow.Ctx = p.Ctx
	e.run(shadow, words)
	shadow.Flush()
	if gone := members(reply.Bytes()); len(gone) > 0 {
		e.note(append([]string{"SREM", words[1]}, gone...))
	}
	p.WriteRaw(reply.String())
}

func members(reply []byte) []string {
	v, err := server.ParseReply(bufio.NewReader(bytes.NewReader(reply)))
	if err != nil {
		return nil
	}
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, m := range v {
			if m, ok := m.(string); ok {
				all = append(all, m)
			}
		}
		return all
	}
	return nil
}

// exec runs one request of a client as one step: one instant, one record. With
// tx it is an EXEC's. False: it had no effect and there is no reply to give, the
// connection must be dropped.
func (s *Server) exec(c *client, tx bool, commands ...[]string) bool {
	if err := s.log.retry(); err != nil {
		// What cannot be kept gets no reply, so no more is taken until it can.
		c.peer.WriteError("MISCONF the journal cannot be written: " + printableLine(err))
		return true
	}
	ok, panicked := s.step(c, tx, commands)
	if panicked {
		s.rebuild()
	}
	return ok
}

func (s *Server) step(c *client, tx bool, commands [][]string) (ok, panicked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return false, false
	}
	defer func() {
		if p := recover(); p != nil {
			s.log.abandon()
			s.engine = nil
			s.onError(fmt.Errorf("journal: %s panicked and is undone: %v", commands[0][0], p))
			ok, panicked = false, true
		}
	}()

	s.advance()
	s.engine.rec = s.log.begin(s.clock.pinned)
	if tx {
		c.peer.WriteLen(len(commands))
	}
	for _, words := range commands {
		if kinds[words[0]] == session && s.own(c.peer, words) {
			continue
		}
		s.engine.dispatch(c.peer, words)
	}
	c.peer.Flush()
	c.need = s.log.end()
	if s.log.due() {
		select {
		case s.compactNow <- struct{}{}:
		default: // asked already
		}
	}
	return true, false
}

// advance pins the clock for the next step. While no key has a deadline, the
// engine is told that no time passed: it would walk all its keys for nothing.
func (s *Server) advance() {
	s.clock.step = 0
	if s.engine.deadlines {
		s.clock.step = s.opts.Resolution
	}
	s.engine.at(s.clock.pin())
}

func (e *engine) at(t time.Time) {
	e.redis.SetTime(t)
	if !e.deadlines {
		e.redis.ClockTTL(true)
	}
}

// rebuild makes a new engine from the journal, after one that panicked in a
// command (miniredis does on some script results, with its lock held): the
// command is as if it had never been.
func (s *Server) rebuild() {
	err := s.log.hold(func() error {
		if s.engine != nil {
			return nil
		}
		st, err := restore(s.dir)
		if err != nil {
			return err
		}
		s.engine = st.engine
		return nil
	})
	if err != nil {
		s.onError(fmt.Errorf("journal: rebuild after a panic, no command is taken from here on: %w", err))
	}
}

func printableLine(err error) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, err.Error())
}
