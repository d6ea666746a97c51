package lab

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const htmlType = "text/html; charset=utf-8"

// routes are the site's pages, N being any word:
//
//	/ok/N                 200, the page of PageOf
//	/gzip/N               the same, gzip-coded
//	/missing/N            404
//	/forbidden/N          403
//	/status/CODE          that status
//	/throttled/N?after=2  429 with that Retry-After, in seconds, then 200
//	/flaky/N?times=2      503 so often, then 200
//	/redirect/N           301, 302 and 307 on the way to /ok/N
//	/loop                 a redirect to /loop/back and from there to /loop
//	/truncated/N?times=1  400 bytes of the 1000 announced, so often, then 200; times=forever
//	/reset/N?times=1      the connection is reset, so often, then 200; times=forever
//	/oversize/N           200 and a body of 1 GiB
//	/slow/N?ms=1000       200 after so long
//	/drip/N?ms=100        200, a byte at a time, so far apart
//	/stall/N              no answer, until the client or the site goes
//	/echo                 the request's header as JSON
//	/files/…              SiteOptions.Files with Faults
//	/robots.txt           SiteOptions.Robots
func (s *Site) routes() http.Handler {
	mux := http.NewServeMux()
	page := func(w http.ResponseWriter, r *http.Request) { writePage(w, r.PathValue("n")) }
	mux.HandleFunc("/ok/{n}", page)
	mux.HandleFunc("/gzip/{n}", gzipped)
	mux.HandleFunc("/missing/{n}", status(http.StatusNotFound))
	mux.HandleFunc("/forbidden/{n}", status(http.StatusForbidden))
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.PathValue("code"))
		if err != nil || code < 200 || code > 599 {
			code = http.StatusBadRequest
		}
		status(code)(w, r)
	})
	mux.HandleFunc("/throttled/{n}", s.throttled)
	mux.HandleFunc("/flaky/{n}", s.first(2, status(http.StatusServiceUnavailable), page))
	mux.HandleFunc("/redirect/{n}", redirect(http.StatusMovedPermanently, "/redirect/%s/2"))
	mux.HandleFunc("/redirect/{n}/2", redirect(http.StatusFound, "/redirect/%s/3"))
	mux.HandleFunc("/redirect/{n}/3", redirect(http.StatusTemporaryRedirect, "/ok/%s"))
	mux.HandleFunc("/loop", redirect(http.StatusFound, "/loop/back"))
	mux.HandleFunc("/loop/back", redirect(http.StatusFound, "/loop"))
	mux.HandleFunc("/truncated/{n}", s.first(1, truncated, page))
	mux.HandleFunc("/reset/{n}", s.first(1, reset, page))
	mux.HandleFunc("/oversize/{n}", oversize)
	mux.HandleFunc("/slow/{n}", func(w http.ResponseWriter, r *http.Request) {
		if !s.wait(r.Context(), millis(r, 1000)) {
			reset(w, r) // or the server would end it as an empty page
			return
		}
		page(w, r)
	})
	mux.HandleFunc("/drip/{n}", s.drip)
	mux.HandleFunc("/stall/{n}", func(w http.ResponseWriter, r *http.Request) {
		s.wait(r.Context(), math.MaxInt64)
		reset(w, r)
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Header)
	})
	mux.HandleFunc("/files/", s.file)
	mux.HandleFunc("/robots.txt", s.robots)
	return mux
}

func writePage(w http.ResponseWriter, name string) {
	body := PageOf(name)
	w.Header().Set("Content-Type", htmlType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}

func gzipped(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", htmlType)
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = z.Write(PageOf(r.PathValue("n")))
	_ = z.Close()
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", htmlType)
		w.WriteHeader(code)
		if code != http.StatusNoContent && code != http.StatusNotModified {
			_, _ = fmt.Fprintf(w, "<!doctype html><title>%d</title><p>%s</p>\n", code, http.StatusText(code))
		}
	}
}

// tooMany answers 429 with a Retry-After of whole seconds, rounded up.
func tooMany(w http.ResponseWriter, after time.Duration) {
	seconds := int64((after + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	status(http.StatusTooManyRequests)(w, nil)
}

func (s *Site) throttled(w http.ResponseWriter, r *http.Request) {
	if s.ask(r.URL.Path) > 0 {
		writePage(w, r.PathValue("n"))
		return
	}
	after := time.Duration(number(r, "after", 2)) * time.Second
	s.closeFor(r.URL.Path, after)
	tooMany(w, after)
}

// first lets bad answer the first requests of a path, as many as ?times says or
// else def, and good the others.
func (s *Site) first(def int, bad, good http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		times := number(r, "times", def)
		if r.URL.Query().Get("times") == "forever" {
			times = math.MaxInt
		}
		if s.ask(r.URL.Path) < times {
			bad(w, r)
			return
		}
		good(w, r)
	}
}

func redirect(code int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		target := to
		if strings.Contains(to, "%s") {
			target = fmt.Sprintf(to, r.PathValue("n"))
		}
		http.Redirect(w, r, target, code)
	}
}

// truncated announces 1000 bytes and sends 400.
func truncated(w http.ResponseWriter, r *http.Request) {
	cutAt(w, r, PageOf(r.PathValue("n"))[:1000], 400)
}

// cutAt announces the whole body, sends n bytes of it and hangs up.
func cutAt(w http.ResponseWriter, _ *http.Request, body []byte, n int) {
	w.Header().Set("Content-Type", htmlType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body[:n])
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	if c, _, err := rc.Hijack(); err == nil {
		_ = c.Close()
	}
}

// reset breaks the connection with a RST, unanswered.
func reset(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	raw := c
	if t, ok := c.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = raw.Close()
}

func oversize(w http.ResponseWriter, r *http.Request) {
	chunk := PageOf(r.PathValue("n"))
	w.Header().Set("Content-Type", htmlType)
	for sent := 0; sent < 1<<30; sent += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func (s *Site) drip(w http.ResponseWriter, r *http.Request) {
	body, every := PageOf(r.PathValue("n")), millis(r, 100)
	w.Header().Set("Content-Type", htmlType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	rc := http.NewResponseController(w)
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil || rc.Flush() != nil || !s.wait(r.Context(), every) {
			return
		}
	}
}

func (s *Site) robots(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.opts.RobotsStatus != 0:
		status(s.opts.RobotsStatus)(w, r)
	case s.opts.Robots == "":
		status(http.StatusNotFound)(w, r)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(s.opts.Robots))
	}
}

// number reads a query's number; def where there is none.
func number(r *http.Request, name string, def int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n >= 0 {
		return n
	}
	return def
}

func millis(r *http.Request, def int) time.Duration {
	return time.Duration(number(r, "ms", def)) * time.Millisecond
}
