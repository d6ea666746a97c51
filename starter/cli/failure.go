package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitInterrupted = 130
)

// Failure is an error as the user sees it: one line that says what is wrong,
// one that says what to do, a code for programs and the process's exit code.
type Failure struct {
	// Code is one word of a closed vocabulary: "usage", "bad_input", "unreachable" ….
	Code string
	// Message says what is wrong, in one line for most.
	Message string
	// Hint says what to do; may be empty.
	Hint string
	// Exit is the exit code.
	Exit int
	// Err is the cause, for errors.Is; its text is not shown.
	Err error
}

func (f *Failure) Error() string { return f.Message }
func (f *Failure) Unwrap() error { return f.Err }

// usage is wrong use of a command: exit 2.
func usage(hint, format string, args ...any) *Failure {
	return &Failure{Code: "usage", Message: fmt.Sprintf(format, args...), Hint: hint, Exit: ExitUsage}
}

// badInput is input that was refused before anything was written: exit 2.
func badInput(hint, format string, args ...any) *Failure {
	return &Failure{Code: "bad_input", Message: fmt.Sprintf(format, args...), Hint: hint, Exit: ExitUsage}
}

// refused is a request that the state of things does not allow: exit 2.
func refused(code, hint, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint, Exit: ExitUsage}
}

// unreachable is a service that does not answer: exit 3.
func unreachable(err error, hint, format string, args ...any) *Failure {
	return &Failure{Code: "unreachable", Message: fmt.Sprintf(format, args...), Hint: hint, Exit: ExitUnreachable, Err: err}
}

// failed is work that was done and did not succeed: exit 1.
func failed(code, hint, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint, Exit: ExitFailed}
}

// interrupted is Ctrl-C: exit 130. goesOn is the command that goes on.
func interrupted(goesOn, format string, args ...any) *Failure {
	return &Failure{
		Code: "interrupted", Message: "interrupted, state kept: " + fmt.Sprintf(format, args...),
		Hint: "go on with: " + goesOn, Exit: ExitInterrupted, Err: context.Canceled,
	}
}

// asFailure returns err as the user is to see it. An error that no command gave
// a form is the work's own: exit 1; after Ctrl-C it is the interruption.
func asFailure(ctx context.Context, err error) *Failure {
	var f *Failure
	known := errors.As(err, &f)
	// What a call says after its context ended is not the service's fault.
	if ctx.Err() != nil && (!known || f.Exit == ExitUnreachable) {
		return interrupted("the same command", "it is as it was when you stopped this")
	}
	if known {
		return f
	}
	return &Failure{Code: "failed", Message: err.Error(), Exit: ExitFailed, Err: err}
}

// print writes the failure: two lines, or one JSON object.
func (f *Failure) print(w io.Writer, asJSON bool) {
	if asJSON {
		line, err := json.Marshal(map[string]any{
			"error": map[string]string{"code": f.Code, "message": f.Message, "hint": f.Hint},
		})
		if err == nil {
			_, _ = fmt.Fprintf(w, "%s\n", line)
			return
		}
	}
	_, _ = fmt.Fprintf(w, "error: %s\n", f.Message)
	if f.Hint != "" {
		_, _ = fmt.Fprintf(w, "hint:  %s\n", f.Hint)
	}
}

// helpHint points at a command's help.
func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("see %s --help", cmd.CommandPath())
}
