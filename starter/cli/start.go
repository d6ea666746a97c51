package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"holdfast/internal/crawl"
	"holdfast/internal/frontier"
	"holdfast/workflows"
)

// start is a campaign's run that is to be started, checked to its end: nothing
// was written yet.
type start struct {
	spec   crawl.Spec
	seeds  *seeds
	newRun bool
	// goOn takes an open or ended run of the same input for the one that is
	// meant, instead of refusing.
	goOn bool
}

// Started is what a start came to.
type Started struct {
	Campaign   string `json:"campaign"`
	Run        int    `json:"run"`
	Name       string `json:"name"`
	WorkflowID string `json:"workflow_id"`
	// Resumed says that the run was there and went on.
	Resumed bool `json:"resumed"`
	frontier.Added
	// over says that the run had ended before.
	over bool
}

// prepare settles what the URLs decide of the spec, and refuses what rule 2
// refuses. It contacts nothing.
func (a *App) prepare(st *start) error {
	if st.seeds.loopbackOnly() {
		st.spec.AllowPrivate = true
	}
	if err := a.needContact(st.spec, st.seeds.outside); err != nil {
		return err
	}
	if st.spec.Politeness.Robots == "ignore" {
		a.note("robots.txt is ignored: that is on you, and it is written into the run's run.json")
	}
	if st.seeds.inside != "" && !st.spec.AllowPrivate {
		a.note("%s is on loopback beside public targets: it will be refused unless --allow-private is given", oneLine(st.seeds.inside))
	}
	return nil
}

// source names the input; its digest covers the spec, so that another delay is
// another input.
func (st *start) source() (frontier.Source, error) {
	spec, err := json.Marshal(st.spec)
	if err != nil {
		return frontier.Source{}, fmt.Errorf("encode spec: %w", err)
	}
	h := sha256.New()
	h.Write(spec)
	h.Write([]byte(st.seeds.digest))
	return frontier.Source{Digest: hex.EncodeToString(h.Sum(nil)), Label: st.seeds.label, Total: st.seeds.total}, nil
}

// start creates the run, starts its workflow and loads its input; run again
// after it was killed at any point, it goes on.
func (s *session) start(ctx context.Context, st *start) (Started, error) {
	src, err := st.source()
	if err != nil {
		return Started{}, err
	}
	if err := s.needSetup(ctx); err != nil {
		return Started{}, err
	}
	if err := s.needProxies(ctx, st, src); err != nil {
		return Started{}, err
	}
	info, resumed, err := s.frontier.CreateRun(ctx, st.spec, src, frontier.CreateOptions{NewRun: st.newRun})
	started := Started{
		Campaign: info.Campaign, Run: info.Run, Name: info.Name(), WorkflowID: info.Name(), Resumed: resumed,
	}
	if err != nil {
		same := info.Source.Digest == src.Digest
		if !st.goOn || !same || info.Campaign == "" {
			return started, s.startRefused(err, info, st)
		}
		started.Resumed, started.over = true, info.State == frontier.RunFinished || info.State == frontier.RunCanceled
		if started.over {
			return started, nil
		}
	}
	if err := s.startWorkflow(ctx, info); err != nil {
		return started, err
	}
	if info.Sealed {
		return started, nil
	}
	started.Added, err = s.load(ctx, info, st.seeds)
	return started, err
}

// startRefused says what to do where the registry refuses a start.
func (s *session) startRefused(err error, info frontier.RunInfo, st *start) error {
	f := s.refusedStart(err, info, st)
	if f == nil {
		return s.redisFailure(err)
	}
	f.Err = err
	return f
}

func (s *session) refusedStart(err error, info frontier.RunInfo, st *start) *Failure {
	run := info.Name()
	watch := "watch it: " + s.app.command("campaign watch "+run)
	switch {
	case errors.Is(err, frontier.ErrRunOpen) && st.goOn:
		return refused("input_differs", watch+", end it: "+s.app.command("campaign cancel "+run)+", or give another --name",
			"%s is open (%s), and this is other input: %s", run, info.State, differences(info, st))
	case errors.Is(err, frontier.ErrRunOpen):
		return refused("run_open", watch+", add to it: "+s.app.command("campaign add "+info.Campaign+" --urls FILE")+
			", or end it: "+s.app.command("campaign cancel "+run),
			"campaign %s has an open run, %s (%s)", info.Campaign, run, info.State)
	case errors.Is(err, frontier.ErrInputDiffers):
		return refused("input_differs", "finish it with the command that started it, or end it: "+s.app.command("campaign cancel "+run),
			"%s is still loading, and from other input: %s", run, differences(info, st))
	case errors.Is(err, frontier.ErrRunEnded) && st.goOn:
		return refused("input_differs", "give --new-run to crawl again, or another --name",
			"%s has ended, and this is other input: %s", run, differences(info, st))
	case errors.Is(err, frontier.ErrRunEnded):
		return refused("run_ended", "give --new-run to crawl again, or another --name",
			"the latest run of campaign %s, %s, is %s", info.Campaign, run, info.State)
	}
	return nil
}

// differences names what differs between a run and a start.
func differences(info frontier.RunInfo, st *start) string {
	src := info.Source
	switch {
	case src.Label != st.seeds.label:
		return fmt.Sprintf("it came from %s, this is %s", oneLine(src.Label), oneLine(st.seeds.label))
	case src.Total != st.seeds.total:
		return fmt.Sprintf("it has %d URLs, this has %d", src.Total, st.seeds.total)
	}
	was, errWas := json.Marshal(info.Spec)
	is, errIs := json.Marshal(st.spec)
	if errWas == nil && errIs == nil && string(was) != string(is) {
		return "the URLs are as many, the flags differ"
	}
	return "the file's name is the same, its content is not"
}

// needSetup refuses a start on a cluster without our search attributes, before
// anything is written: the workflow's own start would be refused later. Where
// they cannot be listed, that later refusal has to do.
func (s *session) needSetup(ctx context.Context) error {
	have, err := s.temporal.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
		Namespace: s.target.temporal.Namespace,
	})
	var gone *serviceerror.NamespaceNotFound
	if errors.As(err, &gone) {
		return s.app.temporalFailure(s.target, "list search attributes", err)
	}
	if err != nil {
		return nil
	}
	for attr := range attributes() {
		if _, there := have.GetCustomAttributes()[attr]; !there {
			return s.app.notSetUp(s.target)
		}
	}
	return nil
}

// needProxies refuses a start whose selection matches no proxy that could ever
// be used (rule 3). A run that is there already goes on and waits for proxies.
func (s *session) needProxies(ctx context.Context, st *start, src frontier.Source) error {
	p := st.spec.Proxies
	if p.Direct {
		return nil
	}
	latest, err := s.frontier.Latest(ctx, st.spec.Name)
	if err != nil && !errors.Is(err, frontier.ErrNoRun) {
		return s.redisFailure(err)
	}
	over := latest.State == frontier.RunFinished || latest.State == frontier.RunCanceled
	if err == nil && latest.Source.Digest == src.Digest && (st.goOn || !over) {
		return nil
	}
	n, total, err := s.eligible(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case n > 0:
		return nil
	case total == 0:
		return refused("no_proxy", "import some: "+s.app.command("proxies import FILE")+", or ask from the workers' own address with --direct",
			"the pool has no proxy")
	}
	return refused("no_proxy", "see "+s.app.command("proxies list")+"; restore or import some, choose others with --tag and --region, or give --direct",
		"none of the pool's %d proxies can be used: they are quarantined, expired or not of this choice", total)
}

// eligible counts the proxies that a selection could use now or after a rest.
func (s *session) eligible(ctx context.Context, p crawl.ProxySpec) (n, total int, err error) {
	all, err := s.pool.Proxies(ctx)
	if err != nil {
		return 0, 0, s.redisFailure(err)
	}
	for _, x := range all {
		if usable(x, selector(p), s.app.env.Now()) {
			n++
		}
	}
	return n, len(all), nil
}

// startWorkflow starts the run's Campaign workflow; one that runs already is as good.
func (s *session) startWorkflow(ctx context.Context, info frontier.RunInfo) error {
	_, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       info.Name(),
		TaskQueue:                                workflows.ControlQueue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		TypedSearchAttributes:                    temporal.NewSearchAttributes(workflows.CampaignAttr.ValueSet(info.Campaign)),
		StaticSummary:                            fmt.Sprintf("campaign %s, run %d", info.Campaign, info.Run),
	}, workflows.CampaignWorkflow, workflows.CampaignInput{Campaign: info.Campaign, Run: info.Run})
	var there *serviceerror.WorkflowExecutionAlreadyStarted
	if err == nil || errors.As(err, &there) {
		return nil
	}
	return s.app.temporalFailure(s.target, "start campaign workflow "+info.Name(), err)
}
