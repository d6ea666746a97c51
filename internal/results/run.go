package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
)

// OpenRun writes run.json and campaign.yaml of the run, if they are not there,
// and points `latest` to it unless a newer run has it. Safe to repeat and to
// run on several workers at once: they write the same.
func (l *Local) OpenRun(ctx context.Context, m RunMeta) error {
	run, err := runPath(m.Campaign, m.Run)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := mkdirs(l.root, run); err != nil {
		return fmt.Errorf("make run folder: %w", err)
	}
	m.Spec.Fetch.Headers = maskHeaders(m.Spec.Fetch.Headers)
	meta, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode run.json: %w", err)
	}
	campaign, err := campaignYAML(m)
	if err != nil {
		return fmt.Errorf("encode campaign.yaml: %w", err)
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{yamlFile, campaign}, {runFile, append(meta, '\n')}} {
		name := path.Join(run, f.name)
		if _, err := l.root.Stat(name); err == nil {
			continue
		}
		if err := l.writeAtomic(name, f.content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	last, err := latestRun(l.root, m.Campaign)
	if err == nil && last >= m.Run {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrName) {
		return err
	}
	if err := l.writeAtomic(path.Join(m.Campaign, latestFile), []byte(runName(m.Run)+"\n")); err != nil {
		return fmt.Errorf("write latest: %w", err)
	}
	return nil
}

// maskHeaders hides the values of headers that may carry a secret: results are
// passed on to people who may not have it.
func maskHeaders(h map[string]string) map[string]string {
	out := maps.Clone(h)
	for name := range out {
		lower := strings.ToLower(name)
		for _, part := range []string{"auth", "cookie", "token", "key", "secret", "password", "session"} {
			if strings.Contains(lower, part) {
				out[name] = "(not kept)"
			}
		}
	}
	return out
}
