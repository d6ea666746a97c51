package cli_test

import (
	"context"
	"net"
	"sync"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

// temporalServer is the part of a Temporal frontend that the commands speak to,
// over real gRPC: it keeps starts, cancels and histories in memory. The real
// server is held to the same commands in the tests of the all-in-one program.
type temporalServer struct {
	workflowservice.UnimplementedWorkflowServiceServer
	addr string

	mu         sync.Mutex
	started    map[string]*workflowservice.StartWorkflowExecutionRequest
	canceled   []string
	histories  map[string][]*historypb.HistoryEvent
	attributes map[string]enumspb.IndexedValueType
	adds       int
	pollers    int
	startErr   error
}

func startTemporal(t *testing.T) *temporalServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &temporalServer{
		addr:      l.Addr().String(),
		started:   map[string]*workflowservice.StartWorkflowExecutionRequest{},
		histories: map[string][]*historypb.HistoryEvent{},
		attributes: map[string]enumspb.IndexedValueType{
			"HoldfastCampaign": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"HoldfastHost":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			"HoldfastReason":   enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		},
		pollers: 1,
	}
	g := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		resp, err := h(ctx, req)
		if err != nil {
			err = serviceerror.ToStatus(err).Err()
		}
		return resp, err
	}))
	workflowservice.RegisterWorkflowServiceServer(g, s)
	operatorservice.RegisterOperatorServiceServer(g, &operatorServer{s: s})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(l)
	}()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return s
}

func (s *temporalServer) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: "1.32.1", Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (s *temporalServer) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{ServerVersion: "1.32.1"}, nil
}

func (s *temporalServer) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	if r.GetNamespace() != "default" {
		return nil, serviceerror.NewNamespaceNotFound(r.GetNamespace())
	}
	return &workflowservice.DescribeNamespaceResponse{
		NamespaceInfo: &namespacepb.NamespaceInfo{Name: "default"},
		Config:        &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(720 * 3600e9)},
	}, nil
}

func (s *temporalServer) StartWorkflowExecution(_ context.Context, r *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.startErr != nil {
		return nil, s.startErr
	}
	if s.started[r.GetWorkflowId()] != nil {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("there", r.GetRequestId(), "run-1")
	}
	s.started[r.GetWorkflowId()] = r
	return &workflowservice.StartWorkflowExecutionResponse{RunId: "run-1", Started: true}, nil
}

func (s *temporalServer) RequestCancelWorkflowExecution(_ context.Context, r *workflowservice.RequestCancelWorkflowExecutionRequest) (*workflowservice.RequestCancelWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canceled = append(s.canceled, r.GetWorkflowExecution().GetWorkflowId())
	return &workflowservice.RequestCancelWorkflowExecutionResponse{}, nil
}

func (s *temporalServer) GetWorkflowExecutionHistory(_ context.Context, r *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.GetExecution().GetWorkflowId()
	if run := r.GetExecution().GetRunId(); run != "" {
		key += "@" + run
	}
	events, ok := s.histories[key]
	if !ok {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: events}}, nil
}

func (s *temporalServer) DescribeTaskQueue(context.Context, *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &workflowservice.DescribeTaskQueueResponse{Pollers: make([]*taskqueuepb.PollerInfo, s.pollers)}, nil
}

// start returns the start request of a workflow, nil for none.
func (s *temporalServer) start(id string) *workflowservice.StartWorkflowExecutionRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[id]
}

type operatorServer struct {
	operatorservice.UnimplementedOperatorServiceServer
	s *temporalServer
}

func (o *operatorServer) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	custom := map[string]enumspb.IndexedValueType{}
	for k, v := range o.s.attributes {
		custom[k] = v
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: custom}, nil
}

func (o *operatorServer) AddSearchAttributes(_ context.Context, r *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.adds++
	for k, v := range r.GetSearchAttributes() {
		if _, there := o.s.attributes[k]; there {
			return nil, serviceerror.NewAlreadyExists(k)
		}
		o.s.attributes[k] = v
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}
