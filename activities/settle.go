package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
)

// settleAfter is how old a line without a known ack is looked at: its Finish has
// then ended, here or elsewhere.
const settleAfter = 30 * time.Second

// settleRecord takes this worker's line out again where another's was confirmed first.
func (a *Activities) settleRecord(ctx context.Context, r crawl.Record, file string, acked frontier.Acked) error {
	if !acked.First && acked.File != "" && acked.File != file {
		if err := a.Sink.Drop(ctx, r, file); err != nil {
			return fmt.Errorf("drop record: %w", err)
		}
	}
	a.pages.confirmed(keyOf(r))
	return nil
}

// SettleRecords looks at the lines that this worker wrote and whose ack it never
// saw, because Redis was away and another worker went on with the URL: what that
// one confirmed in a file of its own stands here a second time, and goes.
func (a *Activities) SettleRecords(ctx context.Context) error {
	byRun := map[string][]openRecord{}
	for k, o := range a.pages.openBefore(time.Now().Add(-settleAfter)) {
		byRun[k.run] = append(byRun[k.run], o)
	}
	var errs error
	for run, open := range byRun {
		errs = errors.Join(errs, a.settleRun(ctx, run, open))
	}
	return errs
}

func (a *Activities) settleRun(ctx context.Context, run string, open []openRecord) error {
	keys := make([]crawl.RecordKey, len(open))
	for i, o := range open {
		keys[i] = o.record.Key()
	}
	files, err := a.Frontier.RecordFiles(ctx, run, keys)
	if err != nil {
		return fmt.Errorf("read confirmed records of run %s: %w", run, err)
	}
	for i, o := range open {
		if files[i] == "" {
			continue // its ack is still on its way
		}
		if err := a.settleRecord(ctx, o.record, o.file, frontier.Acked{File: files[i]}); err != nil {
			return err
		}
	}
	return nil
}

func keyOf(r crawl.Record) recordKey {
	return recordKey{run: crawl.RunName(r.Campaign, r.Run), key: r.Key()}
}
