package bench

import (
	"context"
	"fmt"

	enums "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"
)

// sampled is the number of histories that are read after each round.
const sampled = 20

// histories is what a URL leaves in Temporal, its share of the parent included.
type histories struct {
	events, bytes float64
	// eager is the share of workflows whose first task came with their start.
	eager float64
}

func (b *Bench) histories(ctx context.Context, d done) (histories, error) {
	var h histories
	n := min(sampled, len(d.ids))
	for i := range n {
		events, bytes, eager, err := b.history(ctx, d.ids[i*len(d.ids)/n])
		if err != nil {
			return histories{}, err
		}
		h.events += float64(events) / float64(n)
		h.bytes += float64(bytes) / float64(n)
		if eager {
			h.eager += 1 / float64(n)
		}
	}
	if d.parent != "" {
		events, bytes, _, err := b.history(ctx, d.parent)
		if err != nil {
			return histories{}, err
		}
		per := len(d.ids)
		if d.perParent > 0 {
			per = d.perParent
		}
		h.events += float64(events) / float64(per)
		h.bytes += float64(bytes) / float64(per)
	}
	return h, nil
}

func (b *Bench) history(ctx context.Context, id string) (events, bytes int, eager bool, err error) {
	iter := b.at.Temporal.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return 0, 0, false, fmt.Errorf("read history of %s: %w", id, err)
		}
		events++
		bytes += proto.Size(e)
		if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
			eager = a.GetEagerExecutionAccepted()
		}
	}
	return events, bytes, eager, nil
}
