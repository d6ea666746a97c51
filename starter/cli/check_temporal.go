package cli

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"holdfast/workflows"
)

// shortRetention is a retention below which long campaigns lose their histories
// while they run.
const shortRetention = 72 * time.Hour

// attributes are the search attributes that the workflows are started with.
func attributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		workflows.CampaignAttr.GetName(): enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		workflows.HostAttr.GetName():     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		workflows.ReasonAttr.GetName():   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}
}

// checkNamespace reports the server and whether the namespace is there.
func (a *App) checkNamespace(ctx context.Context, r *report, t target, c client.Client) bool {
	version := "version unknown"
	if info, err := c.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{}); err == nil {
		version = "server " + info.GetServerVersion()
	}
	r.ok("temporal", t.temporal.HostPort+", "+version)
	ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.temporal.Namespace})
	if err != nil {
		r.err("namespace", a.temporalFailure(t, "describe namespace", err))
		return false
	}
	keep := ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	detail := fmt.Sprintf("%q keeps closed workflows for %s", t.temporal.Namespace, span(keep))
	if keep > 0 && keep < shortRetention {
		r.warn("namespace", detail, "explain needs the histories; raise it: temporal operator namespace update --retention 720h "+t.temporal.Namespace)
		return true
	}
	r.ok("namespace", detail)
	return true
}

// checkAttributes reports the search attributes; with add it registers those
// that are missing.
func (a *App) checkAttributes(ctx context.Context, r *report, t target, c client.Client, add bool) {
	const name = "search attributes"
	have, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: t.temporal.Namespace})
	if err != nil {
		r.failed(name, "cannot be read: "+oneLine(err.Error()), attributesByHand(t))
		return
	}
	missing := map[string]enumspb.IndexedValueType{}
	for attr, want := range attributes() {
		got, found := have.GetCustomAttributes()[attr]
		if !found {
			missing[attr] = want
		} else if got != want {
			r.failed(name, fmt.Sprintf("%s is there as %s, it must be %s", attr, got, want),
				"remove it (temporal operator search-attribute remove --name "+attr+"), then run: "+a.command("setup"))
			return
		}
	}
	switch {
	case len(missing) == 0:
		r.ok(name, list(attributes())+" are registered")
	case !add:
		r.failed(name, list(missing)+" missing", "run: "+a.command("setup"))
	default:
		a.addAttributes(ctx, r, t, c, missing)
	}
}

func (a *App) addAttributes(ctx context.Context, r *report, t target, c client.Client, missing map[string]enumspb.IndexedValueType) {
	const name = "search attributes"
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: t.temporal.Namespace, SearchAttributes: missing,
	})
	var there *serviceerror.AlreadyExists
	switch {
	case errors.As(err, &there):
		r.ok(name, list(missing)+" were registered by somebody else just now")
	case err != nil:
		r.failed(name, "cannot be registered: "+oneLine(err.Error()), attributesByHand(t))
	default:
		r.done(name, "registered "+list(missing))
	}
}

// attributesByHand is for clusters whose operator service is closed to us.
func attributesByHand(t target) string {
	return fmt.Sprintf("have an operator register %s as Keyword in namespace %q", list(attributes()), t.temporal.Namespace)
}

// checkPollers reports the workers that ask for tasks.
func (a *App) checkPollers(ctx context.Context, r *report, t target, c client.Client) {
	for _, queue := range []string{workflows.TaskQueue, workflows.ControlQueue} {
		name := "workers on " + queue
		d, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil {
			r.err(name, a.temporalFailure(t, "describe task queue", err))
			continue
		}
		if n := len(d.GetPollers()); n > 0 {
			r.ok(name, fmt.Sprintf("%d polled in the last minutes", n))
		} else {
			r.warn(name, "none polls: campaigns stand still", "start a worker with the same --address and --redis")
		}
	}
}

func list[V any](m map[string]V) string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}
