package embedded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"holdfast/internal/embedded"
)

// BenchmarkEmptyWorkflows measures what a workflow costs by itself: started
// eagerly by the worker's own client, 64 at once.
func BenchmarkEmptyWorkflows(b *testing.B) {
	ctx := context.Background()
	s, err := embedded.Start(ctx, embedded.Options{Dir: b.TempDir(), NoUI: true, NoRedis: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(ctx)
	c, err := client.Dial(client.Options{HostPort: s.TemporalAddr, Logger: silent{}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { return nil }, workflow.RegisterOptions{Name: "empty"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	b.ResetTimer()
	turns := make(chan int)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range turns {
				run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
					ID: fmt.Sprintf("empty-%d-%d", b.N, i), TaskQueue: queue, EnableEagerStart: true,
				}, "empty")
				if err == nil {
					err = run.Get(ctx, nil)
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		turns <- i
	}
	close(turns)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "workflows/s")
}
