package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"holdfast/internal/lab"
	"holdfast/proxypool"
)

// demoReport is what the demo came to; its JSON is the last line of --output json.
type demoReport struct {
	URLs        int            `json:"urls"`
	Completed   int            `json:"completed"`
	Failed      map[string]int `json:"failed"`
	Retries     int            `json:"retries"`
	ProxyFaults int            `json:"proxy_faults"`
	Waits       int            `json:"waits"`
	Leases      int            `json:"leases"`
	UI          string         `json:"ui"`

	scene    *lab.Demo
	ends     map[string]lab.End
	attempts int
	proxies  []proxypool.Info
	results  string
}

// verdict is nil if every URL ended as it should and no lease is left.
func (r *demoReport) verdict() error {
	err := r.scene.Check(r.ends)
	if r.Leases != 0 {
		err = errors.Join(err, fmt.Errorf("%d leases are left", r.Leases))
	}
	return err
}

func (p *program) show(r *demoReport) {
	if p.app.JSON() {
		line, _ := json.Marshal(r)
		p.printf("%s\n", line)
		return
	}
	p.printf("\n%s\n\n", r.outcomes())
	p.printf("%s\n\n", r.pool())
	p.printf("%d URLs, %d attempts: %d retries, %d proxy faults, %d waits. Leases left: %d.\n",
		r.URLs, r.attempts, r.Retries, r.ProxyFaults, r.Waits, r.Leases)
	p.printf("Results: %s\n", r.results)
	if r.UI != "" {
		p.printf("Web UI:  %s\n", r.UI)
	}
	if r.verdict() == nil {
		p.printf("Every URL ended as it should.\n")
	}
}

// outcomes has a row for each kind of page.
func (r *demoReport) outcomes() string {
	t := newTable("page", "URLs", "expected", "as it should")
	type row struct {
		kind, want string
		urls, good int
	}
	var rows []*row
	byKind := map[string]*row{}
	for _, e := range r.scene.Expected {
		want := lab.End{State: e.State, Reason: e.Reason}
		x := byKind[e.Kind]
		if x == nil {
			x = &row{kind: e.Kind, want: want.String()}
			byKind[e.Kind] = x
			rows = append(rows, x)
		}
		x.urls++
		if r.ends[e.URL] == want {
			x.good++
		}
	}
	for _, x := range rows {
		t.AppendRow(table.Row{x.kind, x.urls, x.want, x.good})
	}
	return t.Render()
}

// pool has a row for each proxy.
func (r *demoReport) pool() string {
	t := newTable("proxy", "name", "scheme", "state", "ok", "failed", "unclear", "why")
	for i, x := range r.proxies {
		name := ""
		if i < len(r.scene.Proxies) {
			name = r.scene.Proxies[i].Name()
		}
		t.AppendRow(table.Row{x.ID, name, x.Scheme, x.State, x.Successes, x.Failures, x.Unclear, x.Reason})
	}
	return t.Render()
}

func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row(columns))
	return t
}
