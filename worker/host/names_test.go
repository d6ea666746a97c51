package host_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"holdfast/activities"
	"holdfast/internal/crawl"
	"holdfast/worker/host"
	"holdfast/workflows"
)

// The names of workflows/api.go, with what workflow code sends and gets.
var contract = map[string]struct {
	in, out reflect.Type
	queue   string
}{
	workflows.ActivityFetch:    {reflect.TypeFor[workflows.FetchInput](), reflect.TypeFor[crawl.Outcome](), workflows.TaskQueue},
	workflows.ActivityFinish:   {reflect.TypeFor[workflows.FinishInput](), nil, workflows.TaskQueue},
	workflows.ActivityAbort:    {reflect.TypeFor[workflows.AbortInput](), nil, workflows.TaskQueue},
	workflows.ActivityFeed:     {reflect.TypeFor[workflows.FeedInput](), reflect.TypeFor[workflows.FeedResult](), workflows.ControlQueue},
	workflows.ActivityDrain:    {reflect.TypeFor[workflows.RunInput](), reflect.TypeFor[workflows.FeedResult](), workflows.ControlQueue},
	workflows.ActivityFinalize: {reflect.TypeFor[workflows.RunInput](), nil, workflows.ControlQueue},
}

func TestEachActivityHasTheSignatureThatWorkflowsCall(t *testing.T) {
	t.Parallel()
	named := activities.New(activities.Config{}).Named()
	if len(named) != len(contract) {
		t.Errorf("%d activities, %d names", len(named), len(contract))
	}
	for name, c := range contract {
		f, ok := named[name]
		if !ok {
			t.Errorf("no activity %s", name)
			continue
		}
		method, ok := reflect.TypeFor[*activities.Activities]().MethodByName(name)
		if !ok {
			t.Errorf("%s is no method of the struct", name)
			continue
		}
		want := []reflect.Type{reflect.TypeFor[error]()}
		if c.out != nil {
			want = []reflect.Type{c.out, want[0]}
		}
		sig := reflect.TypeOf(f)
		if sig.NumIn() != 2 || sig.In(0) != reflect.TypeFor[context.Context]() || sig.In(1) != c.in {
			t.Errorf("%s takes %v", name, sig)
		}
		got := make([]reflect.Type, sig.NumOut())
		for i := range got {
			got[i] = sig.Out(i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s returns %v, want %v", name, got, want)
		}
		if method.Type.NumIn() != 3 || method.Type.In(2) != c.in {
			t.Errorf("method %s is %v", name, method.Type)
		}
	}
}

func TestEachActivityIsServedOnItsQueueAlone(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for name, c := range contract {
		want[c.queue] = append(want[c.queue], name)
	}
	got := host.Served("")
	for queue, names := range want {
		slices.Sort(names)
		slices.Sort(got[queue])
		if !slices.Equal(got[queue], names) {
			t.Errorf("queue %s serves %v, want %v", queue, got[queue], names)
		}
	}
	if len(got) != len(want) {
		t.Errorf("queues %v", got)
	}
	if fetch := host.Served("eu"); len(fetch) != 1 || !slices.Equal(fetch["eu"], []string{workflows.ActivityFetch}) {
		t.Errorf("a fetch worker serves %v", fetch)
	}
}
