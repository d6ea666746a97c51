package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// machine drives a store and a model of it; after each step all that the store
// shows must be what the model holds.
type machine struct {
	b      *bundle
	run    string
	state  frontier.RunState
	sealed bool
	feeder int64
	batch  int
	steps  int
	urls   map[string]*modelURL
	order  []string
	epochs map[int64]bool
	counts frontier.Counts
}

type modelURL struct {
	host  string
	state crawl.State
	epoch int64
	why   crawl.WaitReason
	file  string
}

var modelHosts = []string{"a.example", "b.example", "c.example"}

func (m *machine) draw(r *rapid.T, want ...crawl.State) (string, *modelURL) {
	var ids []string
	for _, id := range m.order {
		for _, w := range want {
			if m.urls[id].state == w {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		r.Skip("no such URL")
	}
	id := rapid.SampledFrom(ids).Draw(r, "id")
	return id, m.urls[id]
}

func (m *machine) Add(r *rapid.T) {
	var urls []string
	for range rapid.IntRange(1, 4).Draw(r, "n") {
		urls = append(urls, fmt.Sprintf("http://%s/%d", rapid.SampledFrom(modelHosts).Draw(r, "host"), rapid.IntRange(0, 20).Draw(r, "page")))
	}
	es := entries(m.b.t, urls...)
	var want frontier.Added
	for _, e := range es {
		if _, ok := m.urls[e.ID]; ok || !m.state.Open() {
			want.Seen++
			continue
		}
		m.urls[e.ID] = &modelURL{host: e.Host, state: crawl.Queued}
		m.order = append(m.order, e.ID)
		want.Added++
	}
	var got frontier.Added
	var err error
	if !m.sealed && rapid.Bool().Draw(r, "batch") {
		got, err = m.b.AddBatch(context.Background(), m.run, m.batch+1, es)
		if err == nil {
			m.batch++
			again, err := m.b.AddBatch(context.Background(), m.run, m.batch, es)
			if err != nil || again != got {
				r.Fatalf("batch again: %+v, %v", again, err)
			}
		}
	} else {
		got, err = m.b.Add(context.Background(), m.run, es)
	}
	if !m.state.Open() {
		if !errors.Is(err, frontier.ErrRunEnded) {
			r.Fatalf("add to a run %s: %v", m.state, err)
		}
		return
	}
	if err != nil || got != want {
		r.Fatalf("added %+v, %v; want %+v", got, err, want)
	}
}

func (m *machine) Claim(r *rapid.T) {
	host := rapid.SampledFrom(modelHosts).Draw(r, "host") + ":80"
	n := rapid.IntRange(0, 4).Draw(r, "n")
	feeder := m.feeder - rapid.Int64Range(0, 1).Draw(r, "behind")
	claims, err := m.b.Claim(context.Background(), m.run, feeder, []frontier.HostQuota{{Host: host, N: n}})
	if feeder != m.feeder {
		if !errors.Is(err, frontier.ErrFenced) {
			r.Fatalf("fenced claim: %v", err)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	want := 0
	if m.state == frontier.RunLoading || m.state == frontier.RunRunning {
		for _, u := range m.urls {
			if u.host == host && u.state == crawl.Queued && want < n {
				want++
			}
		}
	}
	if len(claims) != want {
		r.Fatalf("%d claims of %s, want %d", len(claims), host, want)
	}
	for _, c := range claims {
		u := m.urls[c.ID]
		if u == nil || u.state != crawl.Queued || u.host != host || m.epochs[c.Epoch] {
			r.Fatalf("claim %+v of %+v", c, u)
		}
		u.state, u.epoch, m.epochs[c.Epoch] = crawl.Running, c.Epoch, true
	}
}

func (m *machine) TakeOver(r *rapid.T) {
	m.feeder++
	if err := m.b.TakeOver(context.Background(), m.run, m.feeder); err != nil {
		r.Fatal(err)
	}
}

func (m *machine) Park(r *rapid.T) {
	id, u := m.draw(r, crawl.Queued, crawl.Running, crawl.Waiting, crawl.Completed)
	p := frontier.Parked{ID: id, Why: rapid.SampledFrom([]crawl.WaitReason{crawl.WaitBackoff, crawl.WaitPaused}).Draw(r, "why")}
	p.Wait = time.Duration(rapid.IntRange(0, 2).Draw(r, "wait")) * time.Hour
	if err := m.b.Park(context.Background(), m.run, p); err != nil {
		r.Fatal(err)
	}
	switch {
	case p.Wait == 0 && u.state == crawl.Waiting:
		u.state = crawl.Running
	case p.Wait > 0 && (u.state == crawl.Running || u.state == crawl.Waiting):
		u.state, u.why = crawl.Waiting, p.Why
		m.counts.Waits++
	}
}

func (m *machine) Requeue(r *rapid.T) {
	id, u := m.draw(r, crawl.Queued, crawl.Running, crawl.Waiting, crawl.Failed)
	epoch := u.epoch + rapid.Int64Range(0, 1).Draw(r, "off")
	if err := m.b.Requeue(context.Background(), m.run, id, epoch); err != nil {
		r.Fatal(err)
	}
	if epoch == u.epoch && (u.state == crawl.Running || u.state == crawl.Waiting) {
		u.state = crawl.Queued
	}
}

func (m *machine) Ack(r *rapid.T) {
	id, u := m.draw(r, crawl.Queued, crawl.Running, crawl.Waiting, crawl.Completed, crawl.Failed, crawl.Skipped)
	a := frontier.Ack{
		ID: id, Reason: "http_404", File: rapid.SampledFrom([]string{"", "f1", "f2"}).Draw(r, "file"), Bytes: 10, WireBytes: 5, Retries: 1,
		State: rapid.SampledFrom([]crawl.State{crawl.Completed, crawl.Failed, crawl.Skipped, crawl.StateCanceled}).Draw(r, "end"),
	}
	got, err := m.b.Ack(context.Background(), m.run, a)
	first := !u.state.Terminal()
	if first {
		u.state, u.file = a.State, a.File
		m.counts.Bytes, m.counts.WireBytes, m.counts.Retries = m.counts.Bytes+10, m.counts.WireBytes+5, m.counts.Retries+1
	} else if u.file == "" && u.state == a.State {
		u.file = a.File
	}
	if err != nil || got.First != first || got.File != u.file {
		r.Fatalf("ack %+v: %+v, %v; want first %v, file %q", a, got, err, first, u.file)
	}
}

func (m *machine) Skip(r *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(r, "n")
	got, err := m.b.SkipQueued(context.Background(), m.run, crawl.ReasonSkippedCanceled, n)
	if err != nil || len(got) > n {
		r.Fatalf("%d skipped, %v", len(got), err)
	}
	for _, c := range got {
		u := m.urls[c.ID]
		if u.state != crawl.Queued && (u.state != crawl.Skipped || u.file != "") {
			r.Fatalf("skipped %+v", u)
		}
		u.state = crawl.Skipped
	}
}

func (m *machine) Steer(r *rapid.T) {
	ctx := context.Background()
	var err error
	open := m.state.Open()
	verb := rapid.SampledFrom([]string{"pause", "resume", "resume", "seal", "cancel", "finish", "finish"}).Draw(r, "verb")
	switch verb {
	case "pause":
		if err = m.b.Pause(ctx, m.run); open {
			m.state = frontier.RunPaused
		}
	case "resume":
		if err = m.b.Resume(ctx, m.run); m.state == frontier.RunPaused {
			m.state = frontier.RunLoading
		}
	case "seal":
		must(m.b.t, m.b.Seal(ctx, m.run))
		m.sealed = true
	case "cancel":
		// Rare, as little happens afterwards.
		if rapid.IntRange(0, 9).Draw(r, "dice") > 0 {
			return
		}
		if err = m.b.Cancel(ctx, m.run); open {
			m.state = frontier.RunCanceling
		} else if m.state != frontier.RunFinished {
			open = true
		}
	case "finish":
		over, err := m.b.FinishIfIdle(ctx, m.run)
		if c := m.tally(); (m.sealed || m.state == frontier.RunCanceling) && c.Queued+c.Open() == 0 {
			switch m.state {
			case frontier.RunCanceling:
				m.state = frontier.RunCanceled
			case frontier.RunCanceled:
			default:
				m.state = frontier.RunFinished
			}
		}
		if want := m.state == frontier.RunFinished || m.state == frontier.RunCanceled; err != nil || over != want {
			r.Fatalf("finish: %v, %v; want %v", over, err, want)
		}
		return
	}
	if m.sealed && m.state == frontier.RunLoading {
		m.state = frontier.RunRunning
	}
	if verb != "seal" && open == errors.Is(err, frontier.ErrRunEnded) {
		r.Fatalf("%s of a run %s: %v", verb, m.state, err)
	}
}

func (m *machine) tally() frontier.Counts {
	c := m.counts
	c.Accepted = int64(len(m.urls))
	for _, u := range m.urls {
		switch u.state {
		case crawl.Queued:
			c.Queued++
		case crawl.Running:
			c.Running++
		case crawl.Waiting:
			c.Waiting++
		case crawl.Completed:
			c.Completed++
		case crawl.Failed:
			c.Failed++
		case crawl.Skipped:
			c.Skipped++
		case crawl.StateCanceled:
			c.Canceled++
		}
	}
	return c
}

// Check compares all that the store shows with the model.
func (m *machine) Check(r *rapid.T) {
	ctx := context.Background()
	info, err := m.b.Run(ctx, m.run)
	if err != nil || info.State != m.state || info.Sealed != m.sealed || info.Batches != m.batch {
		r.Fatalf("run %+v, %v; want %s, sealed %v, %d batches", info, err, m.state, m.sealed, m.batch)
	}
	want := m.tally()
	if info.Counts != want {
		r.Fatalf("counts\n%+v, want\n%+v", info.Counts, want)
	}
	m.steps++
	var keys []crawl.RecordKey
	var files []string
	queued, running, waiting, open := map[string]int64{}, map[string]int64{}, map[string]int64{}, 0
	for id, u := range m.urls {
		switch u.state {
		case crawl.Queued:
			queued[u.host]++
		case crawl.Running:
			running[u.host]++
			open++
		case crawl.Waiting:
			waiting[u.host+" "+string(u.why)]++
			open++
		}
		keys, files = append(keys, crawl.RecordKey{ID: id}), append(files, u.file)
	}
	if n := len(m.order); n > 0 {
		id := m.order[m.steps%n]
		if got, err := m.b.URL(ctx, m.run, id); err != nil || got.State != m.urls[id].state {
			r.Fatalf("URL %+v, %v; want %+v", got, err, m.urls[id])
		}
	}
	if got, err := m.b.RecordFiles(ctx, m.run, keys); err != nil || !slices.Equal(got, files) {
		r.Fatalf("files %q, %v; want %q", got, err, files)
	}
	hosts, err := m.b.Peek(ctx, m.run, 10)
	if err != nil || len(hosts) != len(queued) {
		r.Fatalf("hosts %+v, %v; want %v", hosts, err, queued)
	}
	for _, h := range hosts {
		if h.Queued != queued[h.Host] || h.Running != running[h.Host] {
			r.Fatalf("host %+v; want %d queued, %d running", h, queued[h.Host], running[h.Host])
		}
	}
	claims, next, err := m.b.OpenClaims(ctx, m.run, "", 1000)
	if err != nil || next != "" || len(claims) != open {
		r.Fatalf("%d open claims, %q, %v; want %d", len(claims), next, err, open)
	}
	for _, c := range claims {
		if u := m.urls[c.ID]; u.state != c.State || u.epoch != c.Epoch {
			r.Fatalf("claim %+v of %+v", c, u)
		}
	}
	groups, err := m.b.Waiting(ctx, m.run)
	if err != nil || len(groups) != len(waiting) {
		r.Fatalf("groups %+v, %v; want %v", groups, err, waiting)
	}
	for _, g := range groups {
		if g.URLs != waiting[g.Host+" "+string(g.Why)] {
			r.Fatalf("group %+v, want %v", g, waiting)
		}
	}
	if n, err := m.b.FailureCounts(ctx, m.run); err != nil || n["http_404"] != want.Failed {
		r.Fatalf("failures %v, %v; want %d", n, err, want.Failed)
	}
}

func TestTheStoreIsItsModel(t *testing.T) {
	t.Parallel()
	backends := map[string]func(testing.TB) *bundle{"miniredis": onMiniredis}
	if os.Getenv("HOLDFAST_TEST_REDIS") != "" {
		backends["redis"] = onRedis
	}
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := backend(t)
			round := 0
			rapid.Check(t, func(r *rapid.T) {
				round++
				name := fmt.Sprintf("m%d", round)
				_, _, err := b.CreateRun(context.Background(), spec(name), input, frontier.CreateOptions{})
				must(t, err)
				m := &machine{
					b: b, run: crawl.RunName(name, 1), state: frontier.RunLoading,
					urls: map[string]*modelURL{}, epochs: map[int64]bool{},
				}
				m.TakeOver(r)
				r.Repeat(map[string]func(*rapid.T){
					"": m.Check, "add": m.Add, "claim": m.Claim, "claim more": m.Claim, "take over": m.TakeOver, "park": m.Park,
					"requeue": m.Requeue, "ack": m.Ack, "skip": m.Skip, "steer": m.Steer,
				})
			})
		})
	}
}
