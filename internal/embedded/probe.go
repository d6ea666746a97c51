package embedded

import commonpb "go.temporal.io/api/common/v1"

// readiness is a workflow that is not there: to say so, Temporal needs its shard.
var readiness = &commonpb.WorkflowExecution{WorkflowId: "holdfast-readiness"}

// quiet keeps the readiness client's log off the terminal.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
