package cli

import "holdfast/internal/crawl"

// record is what a history holds of a record: no headers, redirects or body.
func (x Explained) record() crawl.Record {
	r := crawl.Record{
		Schema: crawl.RecordSchema, Campaign: x.Campaign, Run: x.Run, Replay: x.Replay, ID: x.ID, URL: x.URL, Method: x.Method,
		State: x.State, Attempts: []crawl.Attempt{}, Accepted: crawl.Stamp(x.Accepted.UnixMilli()), WorkflowID: x.WorkflowID, RunID: x.RunID,
	}
	if x.Reason != "" {
		r.Reason = &x.Reason
	}
	if x.Ended != nil {
		r.Ended = crawl.Stamp(x.Ended.UnixMilli())
	}
	for _, p := range x.Passes {
		o := p.Outcome
		if p.Attempt > 0 {
			a := crawl.Attempt{
				N: p.Attempt, Worker: o.Worker, Proxy: o.Proxy, Region: o.Region, Class: o.Class, Reason: o.Reason,
				Status: o.Status, Started: crawl.Stamp(p.startedAt().UnixMilli()), TookMS: o.TookMS,
			}
			if p.Wait != nil {
				a.ThenWaitMS, a.Why = p.Wait.ForMS, p.Wait.Why
			}
			r.Attempts = append(r.Attempts, a)
			r.Status, r.Bytes, r.WireBytes, r.SHA256, r.Rule = o.Status, o.Bytes, o.WireBytes, o.SHA256, o.Rule
		}
	}
	r.Unchanged = r.Status == 304
	return r
}
