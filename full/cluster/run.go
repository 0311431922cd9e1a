// Package cluster has several processes, on any machines, measure one run together. The command run takes --generators
// with it, which an import brings:
//
//	import _ "github.com/quotabench/quotabench/full/cluster"
//
// N generators drive one load on the same subjects, and one more process, their coordinator, makes one record of what
// they find. All of them meet at a server of NATS, whose other users they do not disturb: the subjects of a run begin
// with quotabench.NAME, and nothing is kept in the server. The generators agree on the plan, begin each step at one
// instant, end together, and send their histories; one verdict comes out. If one is lost the run ends, and its name is
// said.
package cluster

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

func init() { session.Several = func() session.Measurer { return &cluster{wait: joinWait} } }

const (
	// mostGenerators is how many processes share a load at most.
	mostGenerators = 1000
	// meetingVariable stands for --meet, whose password others would see on a command line.
	meetingVariable = "QUOTABENCH_MEET"
	// indexVariable is where a pod of an Indexed Job finds its number. That of the coordinator is 0.
	indexVariable = "JOB_COMPLETION_INDEX"
	// joinWait is how long processes wait for each other at first: a cluster starts its pods one after the other.
	joinWait = 15 * time.Minute
)

// cluster is what the flags of one command line say of several processes.
type cluster struct {
	generators int
	index      int    // of this generator, from 1; 0 for the coordinator
	meet       string // the URL
	wait       time.Duration
	at         meeting
}

var _ session.Measurer = (*cluster)(nil)

// Settings implements [session.Measurer].
func (c *cluster) Settings() []settings.Setting {
	return []settings.Setting{
		{Name: "generators", Title: settings.Load, Value: settings.Whole(&c.generators, 0, mostGenerators), FlagOnly: true,
			Computed: true,
			Doc: "measure from so many `processes`, on any machines, which share all subjects; start this command once for each of " +
				"them with --generator, and once without, which makes the record"},
		{Name: "generator", Title: settings.Load, Value: settings.Whole(&c.index, 0, mostGenerators), FlagOnly: true,
			Computed: true,
			Doc: "which of the generators this process is, from 1 (default: " + indexVariable +
				" in a pod of an Indexed Job, else none)"},
		{Name: "meet", Title: settings.Load, Value: settings.Text(&c.meet), FlagOnly: true, Computed: true, Secret: true,
			PasswordFrom: meetingVariable,
			Doc: "`URL` of the server of NATS at which the processes meet, and a name of this run, e.g. nats://localhost:4222/friday, or " +
				"as " + meetingVariable + " says"},
	}
}

// Prepare implements [session.Measurer].
func (c *cluster) Prepare(s *group.Settings) (bool, error) {
	if c.generators == 0 {
		for _, name := range []string{"generator", "meet"} {
			if s.Given(name) {
				return false, s.Wrong(name, errors.New("it is about several processes: say how many by --generators as well"))
			}
		}
		return false, nil
	}
	if s.Considers() {
		return false, s.Wrong("generators",
			errors.New("name the strategies that the processes measure, e.g. quotabench run incr-expire"))
	}
	if text := os.Getenv(indexVariable); text != "" && !s.Given("generator") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return false, exit.Usagef("%s is %q: give the number of this process by --generator", indexVariable, text)
		}
		c.index = n
	}
	if c.index > c.generators {
		return false, s.Wrong("generator",
			fmt.Errorf("there are %d generators, and this is number %d: start as many as --generators says",
				c.generators, c.index))
	}
	var err error
	c.at, err = parseMeeting(cmp.Or(c.meet, os.Getenv(meetingVariable)))
	if err != nil {
		return false, s.Wrong("meet", err)
	}
	for name, given := range map[string]string{"history": s.History, "against": s.Against, "metrics": s.Metrics} {
		if given != "" {
			return false, s.Wrong(name, errors.New("several processes have none: leave it out with --generators"))
		}
	}
	if s.Sweeps() {
		return false, s.NoSweep("several processes share the load of one setting: leave it out with --generators")
	}
	if c.index > 0 {
		s.Out = "" // it leaves no record: the folder is the coordinator's
	}
	if s.Loop == "" && s.Rate == 0 {
		s.Loop = workloads.Closed
	} else if s.Loop == "" {
		s.Loop = workloads.Open
	}
	if s.Rounds == 0 && !s.Quick {
		s.Rounds = defaultRounds
	}
	return true, nil
}

// defaultRounds is how often every strategy is run if nothing else is said.
const defaultRounds = 8

// Run implements [session.Measurer].
func (c *cluster) Run(cmd *cobra.Command, s *group.Settings, cfg *measure.Config) error {
	if err := adapt(cfg); err != nil {
		return exit.With(exit.Usage, err)
	}
	mark, err := fingerprint(cfg)
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	x, err := session.Open(cmd, s, cfg.StoresNeeded())
	if err != nil {
		return err
	}
	skipped, err := c.check(x, cfg)
	if err != nil {
		return x.Close(err)
	}
	if c.index > 0 {
		return x.Close(c.generate(x, cfg, mark, skipped))
	}
	return x.Close(c.coordinate(x, cfg, mark))
}

// check refuses what cannot be measured here, and returns what is left out with the reason.
func (c *cluster) check(x *session.Session, cfg *measure.Config) (map[string]string, error) {
	cfg.Stores = x.Stores
	cannot := func(plan *harness.Plan) func(strategies.Selection) error {
		other := *cfg
		other.Plan = *plan
		return func(sel strategies.Selection) error {
			return cmp.Or(other.CannotRun(sel), cannotShare(&other, c.generators, sel))
		}
	}
	selected, skipped := cfg.Plan.Split(cannot(&cfg.Plan))
	err := session.LeaveOut(x.Settings, &cfg.Plan, skipped, func(sel strategies.Selection, plan *harness.Plan) error {
		return cannot(plan)(sel)
	})
	if err != nil {
		return nil, err
	}
	cfg.Strategies = selected
	err = cfg.Complete()
	if err == nil { // the stores are known now
		err = cfg.CheckRoom(x.Ctx)
	}
	return skipped, exit.With(exit.Usage, err)
}

// coordinate makes one record of what the generators find.
func (c *cluster) coordinate(x *session.Session, cfg *measure.Config, mark string) error {
	if err := x.Begin(); err != nil {
		return err
	}
	p := plan{welcome: welcome{RunID: strings.ToLower(crand.Text()[:12])}, Generators: c.generators, Fingerprint: mark,
		Wait: c.wait}
	scratch, err := server.NewDir("") // which the next command removes if this one is killed
	if err != nil {
		return exit.With(exit.Failed, err)
	}
	defer scratch.Remove() //nolint:errcheck // it is a temporary directory
	dirs := make([]string, c.generators)
	for i := range dirs {
		dirs[i] = filepath.Join(scratch.Path, fmt.Sprint(i+1))
	}
	p.Keep = func(index int, name string) (io.WriteCloser, error) { return kept(dirs[index-1], name) }
	coordinator, err := listen(c.at, p)
	if err != nil {
		return x.Wrong("meet", err)
	}
	fmt.Fprintf(x.Stderr, "%d generators meet at %s%s: start this command with --generator 1 to --generator %[1]d\n",
		c.generators,
		c.at.server.Host, c.at.server.Path)
	stop := x.Progress.Watch(func() terminal.Status {
		text, share := summary(coordinator.states())
		return terminal.Status{Text: text, Share: share}
	})
	why := coordinator.run(x.Ctx)
	stop()
	x.Progress.End()
	if why != nil {
		for _, name := range x.Stores.Names() {
			store, _ := x.Stores.Get(name)
			cleanAfter(x, store, p.RunID)
		}
	}
	return conclude(x, dirs, why)
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

// cleanAfter removes from a store of others what a run that ended early has left in it: the generator that would do so
// may be gone.
func cleanAfter(x *session.Session, store stores.Store, run string) {
	k, ok := store.(stores.Keeper)
	if !ok || store.Owned() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.Ctx), silence)
	defer cancel()
	session.RemoveDead(ctx, x.Stderr, store.Driver(), store)
	held, err := k.Holdings(ctx, false)
	for _, holding := range held {
		if strings.HasPrefix(string(holding.Scope), run+"_") {
			err = errors.Join(err, store.Wipe(ctx, holding.Scope))
		}
	}
	if err != nil {
		fmt.Fprintf(x.Stderr, "warning: what generators left in %s could not be removed: %v\n", store.Driver(), err)
	}
}

// conclude makes one record of those of the generators, reports it, and turns it, or why they ended early, into an exit
// code.
func conclude(x *session.Session, dirs []string, why error) error {
	_, lost := errors.AsType[*stoppedError](why)
	merged, err := merge(context.WithoutCancel(x.Ctx), dirs)
	switch {
	case lost && err != nil:
		return exit.With(exit.Failed, why)
	case why != nil && err != nil:
		return session.InterruptedOr(x.Ctx, why, exit.Failed)
	case err != nil:
		return exit.With(exit.Failed, err)
	}
	here := x.Measured(merged.Workload.Name, nil)
	merged.Stores = here.Stores
	merged.Provenance = here.Provenance
	merged.Interrupted = why != nil
	if err := x.WriteBundle(&render.Bundle{File: &merged}); err != nil {
		return err
	}
	report(x.Stderr, &merged)
	if lost {
		return exit.With(exit.Failed, why)
	}
	return session.Gated(x.Stderr, session.Verdict(&merged), compare.Check(&merged, x.Gates))
}

// generate measures as one of several generators.
func (c *cluster) generate(x *session.Session, cfg *measure.Config, mark string, skipped map[string]string) error {
	host, _ := os.Hostname() // an unnamed host is shown as such
	h := hello{Index: c.index, Of: c.generators, Fingerprint: mark,
		Place: fmt.Sprintf("process %d on %s", os.Getpid(), cmp.Or(host, "an unnamed host"))}
	fmt.Fprintf(x.Stderr, "generator %d of %d joins at %s%s\n", c.index, c.generators, c.at.server.Host, c.at.server.Path)
	member, err := join(x.Ctx, c.at, h, c.wait, clock.Wall{}.Now)
	if _, refused := errors.AsType[*stoppedError](err); refused {
		return exit.With(exit.Failed, err)
	}
	if err != nil { // a Kubernetes Job tries again
		return session.InterruptedOr(x.Ctx, err, exit.Usage)
	}
	dir, err := server.NewDir("")
	if err != nil {
		return handBack(x, member, "", err)
	}
	defer dir.Remove() //nolint:errcheck // it is a temporary directory
	return handBack(x, member, dir.Path, measureWith(x, cfg, member, dir.Path, skipped))
}

// measureWith measures together with the others, and leaves in a directory what the coordinator needs.
func measureWith(x *session.Session, cfg *measure.Config, m *member, dir string, skipped map[string]string) error {
	p := &peers{member: m}
	cfg.Peers = p
	cfg.Archive = filepath.Join(dir, historyDir)
	cfg.Observer = &teller{Observer: measure.Silent, member: m}
	if err := os.Mkdir(cfg.Archive, 0o755); err != nil {
		return err
	}
	report, err := measure.Measure(m.ctx, *cfg)
	if err != nil {
		return err
	}
	file := x.Measured(cfg.Workload.Name, skipped)
	file.Runs = report.Runs
	file.Interrupted = report.Interrupted
	file.Workload = session.WorkloadRecord(cfg.Workload.Name, report.Info, cfg.Notes())
	file.Skipped = append(file.Skipped, report.Skipped...)
	file.Summaries = results.Summarise(file.Runs)
	data, err := codec.Encode(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, files.ResultsName), data, 0o644); err != nil {
		return err
	}
	if err := p.write(dir); err != nil {
		return err
	}
	if len(report.Skipped) > 0 {
		return fmt.Errorf("%s: %s", report.Skipped[0].Strategy, report.Skipped[0].Reason)
	}
	for i := range report.Runs {
		if invalid, ok := errors.AsType[*results.InvalidError](report.Runs[i].Err()); ok {
			return fmt.Errorf("%s, round %d: the correctness figures are invalid: %s: %s", invalid.Label,
				report.Runs[i].Repetition,
				invalid.Reason.Code, invalid.Reason.Detail)
		}
	}
	return nil
}

// teller tells the coordinator how far a generator has come.
type teller struct {
	measure.Observer
	member     *member
	runs, done int
}

func (t *teller) Begin(runs int) { t.runs = runs }

func (t *teller) Running(strategy string, round, rounds int) {
	t.member.tell(fmt.Sprintf("round %d of %d: %s", round, rounds, strategy), float64(t.done)/float64(max(1, t.runs)))
	t.done++
}

// handBack gives the coordinator what the generator has, and says how it ended.
func handBack(x *session.Session, m *member, dir string, failed error) error {
	stopped, _ := errors.AsType[*stoppedError](context.Cause(m.ctx))
	alone := stopped == nil && m.ctx.Err() != nil // Ctrl-C to all has the coordinator stop them
	if alone {
		failed = errors.New("it was interrupted")
	}
	if dir != "" {
		failed = errors.Join(failed, m.sendFiles(dir, files.ResultsName, knownName, historyDir))
	}
	if err := m.done(failed); err != nil && stopped == nil {
		fmt.Fprintf(x.Stderr, "warning: the coordinator did not hear that this generator has ended: %v\n", err)
	}
	switch {
	case stopped != nil:
		return exit.With(exit.Failed, stopped)
	case alone:
		return exit.With(exit.Interrupted, errors.New("interrupted"))
	case failed != nil:
		// whatever its own code: a Kubernetes Job does not try again
		return exit.With(exit.Failed, errors.New(failed.Error()))
	}
	return nil
}
