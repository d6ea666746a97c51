package cli

import (
	"sort"

	"github.com/spf13/cobra"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// campaignCommand holds the commands on campaigns.
func (a *App) campaignCommand() *cobra.Command {
	return a.group("campaign", "Start, watch and cancel campaigns",
		"A campaign is a list of URLs with its politeness, its proxies and its retries. Each of its runs has a\n"+
			"number: docs-1, docs-2. Where a command takes a campaign's name it means the latest run.",
		[]string{
			"campaign start --name docs --urls urls.txt --contact https://example.org/bot",
			"campaign watch docs",
		},
		a.campaignStartCommand(),
		a.campaignAddCommand(),
		a.campaignStatusCommand(),
		a.campaignWatchCommand(),
		a.campaignListCommand(),
		a.campaignCancelCommand(),
	)
}

// RunView is a run as JSON shows it: the field names are stable.
type RunView struct {
	Campaign string            `json:"campaign"`
	Run      int               `json:"run"`
	Name     string            `json:"name"`
	State    frontier.RunState `json:"state"`
	Input    string            `json:"input"`
	Created  string            `json:"created"`
	Ended    string            `json:"ended,omitempty"`
	frontier.Counts
	// WaitsFor lists what its URLs wait for, most URLs first.
	WaitsFor []frontier.WaitGroup `json:"waits_for,omitempty"`
	// Rate is URLs ended a second, and ETAMS what is left at it; only while it is watched.
	Rate  float64 `json:"rate,omitempty"`
	ETAMS int64   `json:"eta_ms,omitempty"`
}

func viewOf(r frontier.RunInfo) RunView {
	v := RunView{
		Campaign: r.Campaign, Run: r.Run, Name: r.Name(), State: r.State, Input: r.Source.Label,
		Created: crawl.Stamp(r.Created.UnixMilli()), Counts: r.Counts,
	}
	if !r.Ended.IsZero() {
		v.Ended = crawl.Stamp(r.Ended.UnixMilli())
	}
	return v
}

// newestFirst sorts runs by their creation.
func newestFirst(runs []frontier.RunInfo) {
	sort.SliceStable(runs, func(i, j int) bool { return runs[i].Created.After(runs[j].Created) })
}
