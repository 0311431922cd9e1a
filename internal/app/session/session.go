// Package session is what commands that try strategies have in common: the stores that they
// open, the directory that they write to, and the record that they leave in it.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/prometheus"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/cancel"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// Session is one call of such a command.
type Session struct {
	*group.Settings
	Cmd      *cobra.Command
	Ctx      context.Context // of the one command that it serves
	Stderr   io.Writer
	Stores   *stores.Set
	Dir      *Dir
	Progress *terminal.Progress

	path    string // of Dir, before it is made
	closing []func() error
}

// Open checks where files would go, and opens the stores that were asked for and, as far as
// they can be had, those that are needed.
func Open(cmd *cobra.Command, settings *group.Settings, needed []string) (*Session, error) {
	session := &Session{Settings: settings, Cmd: cmd, Ctx: cmd.Context(), Stderr: cmd.ErrOrStderr()}
	restore := OutlivePipes()
	session.closing = append(session.closing, func() error { restore(); return nil })
	var err error
	session.path, err = FreeDir(settings)
	if err != nil {
		return nil, session.Close(err)
	}
	specs, err := settings.Specs()
	if err != nil {
		return nil, session.Close(err)
	}
	session.Stores, err = stores.OpenNeeded(session.Ctx, specs, needed)
	if err != nil {
		return nil, session.Close(InterruptedOr(session.Ctx, err, exit.Usage))
	}
	session.closing = append(session.closing, session.Stores.Close)
	return session, nil
}

// Serve serves figures while the session lasts.
func (x *Session) Serve(from prometheus.Source) error {
	server, err := prometheus.Serve(x.Ctx, x.Metrics, from)
	if err != nil {
		return x.Wrong("metrics", err)
	}
	x.closing = append(x.closing, server.Close)
	fmt.Fprintf(x.Stderr, "metrics: %s\n", server.URL)
	return nil
}

// Begin makes the directory and says what will be used, before it takes its time. Nothing is
// written before.
func (x *Session) Begin(notes ...string) (err error) {
	x.Dir, err = MakeDir(x.Settings, x.path)
	if err != nil {
		return err
	}
	x.closing = append(x.closing, x.Dir.Release)
	for _, note := range notes {
		if note != "" {
			fmt.Fprintln(x.Stderr, note)
		}
	}
	for _, line := range x.Introduction {
		fmt.Fprintln(x.Stderr, format.OneLine(line))
	}
	infos := x.Infos()
	wide := 0
	for name := range infos {
		wide = max(wide, len(storeTitle(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		if strings.Contains(name, ".") && !x.Verbose { // a further one, such as redis.2
			continue
		}
		fmt.Fprintf(x.Stderr, "%-*s %s\n", wide+1, storeTitle(name)+":", infos[name].Text())
	}
	for _, name := range x.Stores.Names() {
		store, _ := x.Stores.Get(name)
		RemoveDead(x.Ctx, x.Stderr, name, store)
	}
	x.Progress = terminal.NewProgress(x.Stderr)
	x.Progress.Detail(x.Quiet, x.Verbose)
	return nil
}

// Close ends the session. It returns err, or why something could not be closed. Next to err it warns of that.
func (x *Session) Close(err error) error {
	for _, f := range slices.Backward(x.closing) {
		failed := f()
		if failed != nil && err != nil {
			fmt.Fprintf(x.Stderr, "warning: %s\n", format.OneLine(failed.Error()))
		}
		err = cmp.Or(err, exit.With(exit.Failed, failed))
	}
	return err
}

// Infos describes all stores by name, those that are absent too.
func (x *Session) Infos() map[string]stores.Info {
	all := map[string]stores.Info{}
	for _, name := range x.Stores.Names() {
		store, _ := x.Stores.Get(name)
		all[name] = store.Info()
	}
	for _, name := range x.Stores.AbsentNames() {
		all[name], _ = x.Stores.Absent(name)
	}
	return all
}

// RemoveDead removes what runs that ended without doing so left in a server of others, and
// says so. That it fails is no reason not to run.
func RemoveDead(ctx context.Context, w io.Writer, name string, store stores.Store) {
	switch did, err := stores.RemoveDead(ctx, store); {
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(w, "warning: %s: what earlier runs left could not be removed: %s\n", name, format.OneLine(err.Error()))
	case did != "":
		fmt.Fprintf(w, "%s: %s\n", name, did)
	}
}

// storeTitle is the name of a store for people.
func storeTitle(name string) string {
	if driver, err := stores.DriverOf(name); err == nil && driver.Name == name {
		return driver.Title
	}
	return name
}

// LeaveOut says of strategies that cannot run, in skipped, which command tries each of them.
// It is an error if none can run, or not one that was named and not merely included in all or in
// a pattern. It is none if only the policy is in the way, which nobody chose.
func LeaveOut(settings *group.Settings, plan *harness.Plan, skipped map[string]string,
	cannot func(strategies.Selection, *harness.Plan) error) error {
	refused := map[string]string{}
	for _, sel := range plan.Strategies {
		label := sel.String()
		if skipped[label] == "" {
			continue
		}
		command := settings.Instead(plan, sel, func(other *harness.Plan) error { return cannot(sel, other) })
		onlyPolicy := command != "" && !settings.Given("policy")
		if plan.Second == nil {
			command = cmp.Or(command, settings.Elsewhere(sel))
		}
		if command != "" {
			skipped[label] += "; this runs it: " + command
		}
		if !onlyPolicy || len(skipped) == len(plan.Strategies) {
			refused[label] = skipped[label]
		}
	}
	if err := refuseNamed(settings.Strategies, refused); err != nil {
		return err
	}
	if len(skipped) == len(plan.Strategies) {
		return exit.Usagef("no strategy can serve policy %s here: %s", plan.Policy.Name, firstReason(skipped))
	}
	return nil
}

// refuseNamed makes it an error that a strategy cannot run which was named, and
// not merely included in all or in a pattern.
func refuseNamed(names []string, skipped map[string]string) error {
	sets := false
	for name := range strings.SplitSeq(strings.Join(names, ","), ",") {
		name = strings.TrimSpace(name)
		for _, label := range slices.Sorted(maps.Keys(skipped)) {
			if label == name || strings.HasPrefix(label, name+"@") { // of --client
				return exit.Usagef("strategy %s: %s", name, skipped[label])
			}
		}
		sets = sets || strategies.IsSet(name)
	}
	if sets || len(skipped) == 0 {
		return nil
	}
	return exit.Usagef("strategy %s", firstReason(skipped))
}

// firstReason is a strategy that cannot run, and why.
func firstReason(skipped map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		return name + ": " + skipped[name]
	}
	return "none is built in"
}

// OutlivePipes has a write to a closed pipe fail instead of ending the process, until
// the function that it returns is called: what is measured is still to be written, and
// servers of others are to be tidied.
func OutlivePipes() func() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGPIPE)
	return func() { signal.Stop(ch) }
}

// Before calls f, which reads files and makes schedules before anything is started,
// and gives it up at the first signal: a file may be a pipe that never ends.
func Before[T any](ctx context.Context, f func() (T, error)) (T, error) {
	v, err := cancel.Call(ctx, f)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = exit.With(exit.Interrupted, ErrNothing)
	}
	return v, err
}

// ErrNothing says that there was nothing to write yet.
var ErrNothing = errors.New("interrupted before anything was measured; nothing was written")

// InterruptedOr is err, unless it merely shows that the user pressed Ctrl-C.
func InterruptedOr(ctx context.Context, err error, code int) error {
	if ctx.Err() != nil {
		return exit.With(exit.Interrupted, ErrNothing)
	}
	return exit.With(code, err)
}
