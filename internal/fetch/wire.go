package fetch

import (
	"io"
	"sync"
	"time"
)

// wireReader counts and caps a body's bytes as they come, and ends the exchange
// when they come too slowly.
type wireReader struct {
	x    *exchange
	r    io.Reader
	n    int64
	rate rate
	// err is the first error but io.EOF.
	err error
}

func (x *exchange) wireOf(r io.Reader) *wireReader {
	w := &wireReader{x: x, r: r}
	w.rate.window = x.c.rateWindow
	w.rate.need = max(1, int64(float64(x.lim.MinRate)*x.c.rateWindow.Seconds()))
	w.rate.slow = func() { x.cancel(errTooSlow) }
	return w
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	// One byte past the cap tells a body of exactly that size from a larger one.
	if room := w.x.lim.MaxWire - w.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	w.rate.begin()
	n, err := w.r.Read(p)
	w.rate.end(n)
	w.n += int64(n)
	w.x.wire += int64(n)
	if w.n > w.x.lim.MaxWire {
		err = tooLarge()
	}
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

func (w *wireReader) stop() { w.rate.stop() }

// rate watches that reading brings at least need bytes a window. Only time spent
// in reads counts: a slow store is not the site's fault.
type rate struct {
	window time.Duration
	need   int64
	slow   func()

	mu    sync.Mutex
	timer *time.Timer
	began time.Time
	spent time.Duration
	bytes int64
}

func (r *rate) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = time.Now()
	if r.timer == nil {
		r.timer = time.AfterFunc(r.window-r.spent, r.expired)
		return
	}
	r.timer.Reset(r.window - r.spent)
}

func (r *rate) end(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Stop()
	r.spent += time.Since(r.began)
	r.bytes += int64(n)
	r.began = time.Time{}
	if r.spent >= r.window {
		r.turn()
	}
}

// expired runs when a window ends within a read.
func (r *rate) expired() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.began.IsZero() {
		return // the read has just ended and judges for itself
	}
	r.began = time.Now()
	r.turn()
	r.timer.Reset(r.window)
}

func (r *rate) turn() {
	if r.bytes < r.need {
		r.slow()
	}
	r.spent, r.bytes = 0, 0
}

func (r *rate) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	r.began = time.Time{}
}
