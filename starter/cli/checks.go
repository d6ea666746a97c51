package cli

import "errors"

// CheckStatus is how a check of setup or doctor came out.
type CheckStatus string

// The statuses of a check. Done: it was not so, and the command made it so.
const (
	CheckOK      CheckStatus = "ok"
	CheckDone    CheckStatus = "done"
	CheckWarning CheckStatus = "warning"
	CheckFailed  CheckStatus = "failed"
)

// Check is one line of setup and doctor.
type Check struct {
	Name   string      `json:"check"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`
	Hint   string      `json:"hint,omitempty"`
}

// report collects checks in their order.
type report struct {
	checks []Check
	// exit is the worst exit code so far: an unreachable service outweighs a failed check.
	exit int
}

func (r *report) ok(name, detail string)           { r.add(name, CheckOK, detail, "") }
func (r *report) done(name, detail string)         { r.add(name, CheckDone, detail, "") }
func (r *report) warn(name, detail, hint string)   { r.add(name, CheckWarning, detail, hint) }
func (r *report) failed(name, detail, hint string) { r.add(name, CheckFailed, detail, hint) }
func (r *report) skipped(name, detail string)      { r.add(name, CheckWarning, "not checked: "+detail, "") }

func (r *report) add(n string, s CheckStatus, d, h string) {
	r.checks = append(r.checks, Check{Name: n, Status: s, Detail: d, Hint: h})
	if s == CheckFailed && r.exit == ExitDone {
		r.exit = ExitFailed
	}
}

// err adds what went wrong with a check.
func (r *report) err(name string, err error) {
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Message: oneLine(err.Error()), Exit: ExitFailed}
	}
	r.failed(name, f.Message, f.Hint)
	r.exit = max(r.exit, f.Exit)
}

// print shows the report and returns the failure that it amounts to, nil for none.
func (a *App) printReport(r *report, what string) error {
	if a.json() {
		if err := a.printJSON(map[string]any{"ok": r.exit == ExitDone, "checks": r.checks}); err != nil {
			return err
		}
	} else {
		g := a.newGrid("check", "status", "detail")
		for _, c := range r.checks {
			g.row(c.Name, a.paint(string(c.Status)), c.Detail)
		}
		g.print()
	}
	if r.exit == ExitDone {
		for _, c := range r.checks {
			if c.Hint != "" {
				a.note("%s: %s", c.Name, c.Hint)
			}
		}
		return nil
	}
	for _, c := range r.checks {
		if c.Status == CheckFailed {
			f := failed("check_failed", c.Hint, "%s: %s: %s", what, c.Name, c.Detail)
			if f.Exit = r.exit; r.exit == ExitUnreachable {
				f.Code = "unreachable"
			}
			return f
		}
	}
	return nil
}
