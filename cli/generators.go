package cli

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/internal/exit"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/internal/terminal"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/stores"
)

// joinWait is how long a generator waits for its coordinator, and that for generators on this machine.
const joinWait = time.Minute

// meeting is where generators meet: at an address or a URL, or, if args are given, on this machine in
// processes with those arguments.
type meeting struct {
	at, token string
	wait      time.Duration
	args      []string
}

// coordinated makes one record of what several generators find.
func coordinated(cmd *cobra.Command, s *group.Settings, cfg *measure.Config, at meeting) (err error) {
	fingerprint, err := generators.Fingerprint(cfg)
	if err != nil {
		return fail(ExitFailed, err)
	}
	x, err := session.Open(cmd, s, cfg.StoresNeeded())
	if err != nil {
		return err
	}
	defer func() { err = x.Close(err) }()
	plan := coordinate.Plan{Generators: cfg.Shard.Of, Fingerprint: fingerprint, Wait: at.wait}
	plan.RunID, plan.Collect = strings.ToLower(crand.Text()[:12]), at.args == nil
	if at.args != nil {
		if plan.Stores, err = reached(x.Stores); err != nil {
			return fail(ExitUsage, err)
		}
	}
	own := *cfg
	own.Shard.Part = 0 // none of them
	j := &job{points: []measure.Config{own}}
	if _, err := j.check(x); err != nil {
		return err
	}
	if err := x.Begin(); err != nil {
		return err
	}
	dirs := make([]string, cfg.Shard.Of)
	for i := range dirs {
		dirs[i] = filepath.Join(x.Dir.Path, fmt.Sprintf("generator-%d", i+1))
	}
	plan.Keep = func(index int, name string) (io.WriteCloser, error) { return kept(dirs[index-1], name) }
	why := meet(x, &plan, at, dirs)
	if why != nil {
		for _, name := range x.Stores.Names() {
			st, _ := x.Stores.Get(name)
			cleanAfter(x, st, plan.RunID)
		}
	}
	return conclude(x, dirs, why)
}

// meet has the generators measure, and returns why they ended early if they did.
func meet(x *session.Session, plan *coordinate.Plan, at meeting, dirs []string) error {
	l, join, err := coordinate.Listen(x.Ctx, at.at, at.token)
	if at.args != nil {
		l, join, err = coordinate.ListenTCP(x.Ctx, at.at, at.token)
	}
	if err != nil {
		return x.Wrong("at", err)
	}
	plan.Token = coordinate.TokenOf(join)
	c := coordinate.NewCoordinator(*plan)
	switch {
	case at.args != nil:
		processes, err := c.StartProcesses(join, dirs, at.args)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		defer processes.Close()
	case !strings.Contains(at.at, "@"): // who gives the token in the URL knows how to join, and a log would show it to others
		fmt.Fprintf(x.Stderr, "each of %d generators joins by:\n  %s=%s quotabench run ... --generator 1/%[1]d\n", plan.Generators,
			coordinate.Variable, join)
	}
	defer x.Progress.End()
	defer x.Progress.Watch(func() terminal.Status {
		text, share := coordinate.Summary(c.States())
		return terminal.Status{Text: text, Share: share}
	})()
	return c.Run(x.Ctx, l)
}

// reached are the URLs of the servers that were started here.
func reached(set *stores.Set) (map[string]string, error) {
	urls := map[string]string{}
	for _, name := range set.Names() {
		st, _ := set.Get(name)
		if info := st.Info(); !st.Owned() && info.Kind != stores.KindEmbedded {
			continue // which its flag leads to
		}
		if r, ok := st.(interface{ URL() string }); ok {
			urls[name] = r.URL()
		}
		if urls[name] == "" {
			return nil, fmt.Errorf("generators cannot reach the %s that is started here: start it by yourself, and give its URL", name)
		}
	}
	return urls, nil
}

// kept makes a file that a generator sends.
func kept(dir, name string) (io.WriteCloser, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("it sends a file of the name %q", name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// cleanAfter removes from a store of others what a run that ended early has left in it: the
// generator that would do so may be gone.
func cleanAfter(x *session.Session, st stores.Store, run string) {
	k, ok := st.(stores.Keeper)
	if !ok || st.Owned() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.Ctx), coordinate.Silence)
	defer cancel()
	session.RemoveDead(ctx, x.Stderr, st.Driver(), st)
	held, err := k.Holdings(ctx, false)
	for _, h := range held {
		if strings.HasPrefix(string(h.Scope), run+"_") {
			err = errors.Join(err, st.Wipe(ctx, h.Scope))
		}
	}
	if err != nil {
		fmt.Fprintf(x.Stderr, "warning: what generators left in %s could not be removed: %v\n", st.Driver(), err)
	}
}

// conclude makes one record of those of the generators, reports it, and turns it, or why they ended
// early, into an exit code.
func conclude(x *session.Session, dirs []string, why error) error {
	_, lost := errors.AsType[*coordinate.StoppedError](why)
	merged, err := generators.Merge(context.WithoutCancel(x.Ctx), dirs)
	switch {
	case lost && err != nil:
		return fail(ExitFailed, why)
	case why != nil && err != nil:
		return session.InterruptedOr(x.Ctx, why, ExitFailed)
	case err != nil:
		return fail(ExitFailed, err)
	}
	here := x.Measured(merged.Workload.Name, nil)
	merged.Stores, merged.Provenance = here.Stores, here.Provenance
	merged.Interrupted = why != nil
	if err := x.WriteBundle(&render.Bundle{File: &merged}); err != nil {
		return err
	}
	generators.Report(x.Stderr, &merged)
	if lost {
		return fail(ExitFailed, why)
	}
	return session.Gated(x.Stderr, session.Verdict(&merged), compare.Check(&merged, x.Gates))
}

// generate measures as one of several generators.
func generate(cmd *cobra.Command, s *group.Settings, cfg *measure.Config) error {
	fingerprint, err := generators.Fingerprint(cfg)
	if err != nil {
		return fail(ExitFailed, err)
	}
	host, _ := os.Hostname() // an unnamed host is shown as such
	hello := coordinate.Hello{Index: cfg.Shard.Part, Of: cfg.Shard.Of, Fingerprint: fingerprint,
		Place: fmt.Sprintf("process %d on %s", os.Getpid(), cmp.Or(host, "an unnamed host"))}
	m, err := coordinate.Join(cmd.Context(), s.CoordinatorURL(), hello, joinWait, clock.Wall{}.Now)
	if _, refused := errors.AsType[*coordinate.StoppedError](err); refused {
		return fail(ExitFailed, err)
	} else if err != nil { // a Kubernetes Job tries again
		return session.InterruptedOr(cmd.Context(), err, ExitUsage)
	}
	err = generators.CheckRunID(m.RunID)
	for name, url := range m.Stores {
		if s.From[name] == nil {
			err = errors.Join(err, fmt.Errorf("this program has no store of the kind %s", name))
		} else {
			*s.From[name] = url
		}
	}
	generators.Join(cfg, m.RunID, m)
	if err == nil {
		cmd.SetContext(m.Context())
		err = carryOut(cmd, s, &job{points: []measure.Config{*cfg}, tell: m.Tell, measure: alone})
	}
	return handBack(cmd, s.Out, m, err)
}

// handBack gives the coordinator what it asks for, and says how the generator ended. That its part alone
// fails a gate says nothing.
func handBack(cmd *cobra.Command, dir string, m *coordinate.Member, err error) error {
	failed := err
	alone := errors.Is(context.Cause(m.Context()), context.Canceled) // Ctrl-C to all has the coordinator stop them
	switch e, ok := errors.AsType[*exit.Error](err); {
	case err != nil && alone:
		failed = errors.New("it was interrupted")
	case ok && (e.Code == ExitGate || e.Code == ExitInterrupted):
		failed, err = nil, nil
	}
	if m.Collect {
		failed = errors.Join(failed, m.SendFiles(dir, render.ResultsName, generators.HistoryDir))
	}
	stopped, _ := errors.AsType[*coordinate.StoppedError](context.Cause(m.Context()))
	if done := m.Done(failed); done != nil && stopped == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the coordinator did not hear that this generator has ended: %v\n", done)
	}
	switch {
	case stopped != nil:
		return fail(ExitFailed, stopped)
	case failed != nil && !alone:
		return fail(ExitFailed, errors.New(failed.Error())) // whatever its own code: a Kubernetes Job does not try again
	}
	return err
}
