//go:build unix

// Command instrument says whether the instrument got faster: it builds an earlier
// commit next to this working tree, runs both in turns and prints the ratio of each
// figure. It also runs redis-benchmark and this tree's placements next to ours.
//
//	go run ./internal/instrument [-base 98043b8] [-pairs 5] [-only REGEXP] [-long] [-commit]
//
// Ratios are committed next to it: of two builds, or to a limit in the same run. It exits with 1 if a row
// fell a tenth behind its committed ratio, if something differs that has to be the same on both sides, or if
// a probe failed, with 2 if nothing can be compared, and with 130 after Ctrl-C. The commit's worktree is
// removed in each case.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/tools/program"
)

func main() {
	program.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return run(ctx, probes(), args, stdout, stderr)
	})
}

func run(ctx context.Context, all []probe, args []string, stdout, stderr io.Writer) int {
	p := program.New("instrument", stderr)
	base := p.String("base", "98043b8", "`commit` to compare with")
	n := p.Int("pairs", 5, "pairs of samples per probe")
	only := p.String("only", "", "run the probes whose name matches this `regexp` alone")
	withLong := p.Bool("long", false, "run the probes too that take minutes")
	commit := p.Bool("commit", false, "make what is measured the committed ratios")
	path := p.String("committed", "", "`file` of the committed ratios (default internal/instrument/committed.tsv)")
	if code, ok := p.Begin(args); !ok {
		return code
	}
	fail := func(code int, err error) int { return p.Fail(ctx, code, err) }
	picked, err := pick(all, *only, *withLong)
	if err == nil && (*n < 1 || p.NArg() > 0) {
		err = errors.New("give at least one pair, and no arguments beside the flags")
	}
	if err != nil {
		return fail(program.Usage, err)
	}
	t := &tool{stderr: stderr, named: *base}
	defer func() {
		if err := t.close(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(stderr, "instrument:", err)
		}
	}()
	if err := t.open(ctx, picked, *base); err != nil {
		return fail(program.Usage, err)
	}
	*path = cmp.Or(*path, filepath.Join(t.here.root, "internal", "instrument", "committed.tsv"))
	committed, err := readLedger(*path)
	if err != nil {
		return fail(program.Usage, err)
	}
	if err := t.build(ctx, picked); err != nil {
		return fail(program.Failed, err)
	}
	rep, failed := t.measure(ctx, picked, *n, committed)
	rep.given = t.given
	if *commit && ctx.Err() == nil {
		committed.add(rep.rows(), t.named)
		if err := committed.write(*path); err != nil {
			return fail(program.Failed, err)
		}
	}
	rep.print(stdout)
	switch behind := rep.behind(); {
	case ctx.Err() != nil:
		return fail(program.Interrupted, nil)
	case failed > 0:
		return fail(program.Failed, fmt.Errorf("%d probes failed", failed))
	case len(behind) > 0:
		return fail(program.Failed, fmt.Errorf("%s behind: %s", format.Plural(int64(len(behind)), "row is", "rows are"),
			strings.Join(behind, "; ")))
	}
	return 0
}

// pick returns the probes whose names match. If none is named these are the tables'.
func pick(all []probe, only string, withLong bool) (picked []probe, err error) {
	re, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	var names []string
	for _, probe := range all {
		names = append(names, probe.name)
		if re.MatchString(probe.name) && (only != "" || probe.when == always || probe.when == long && withLong) {
			picked = append(picked, probe)
		}
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("-only %s: no probe has such a name: there are %s", only, strings.Join(names, ", "))
	}
	return picked, nil
}

// tool is what all probes share.
type tool struct {
	stderr     io.Writer
	dir        string // temporary
	base, here *side  // base is nil if no probe needs it
	named      string // the commit: the beginning of its hash, by which committed files name it
	worktree   bool
	given      []module  // that the base was built with, in this tree's versions
	others     []float64 // shares of the processors that other programs took, by sample
}

// open makes the sides. The commit's worktree is made if a probe needs it.
func (t *tool) open(ctx context.Context, picked []probe, base string) (err error) {
	root, err := program.Root(ctx)
	if err != nil {
		return err
	}
	t.here = &side{root: root}
	t.dir, err = os.MkdirTemp("", "quotabench-instrument-")
	if err != nil {
		return err
	}
	t.here.bin = filepath.Join(t.dir, "here")
	for _, probe := range picked {
		if probe.group == beforeAndNow && t.base == nil {
			if err := t.checkOut(ctx, base); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOut makes a worktree of the commit.
func (t *tool) checkOut(ctx context.Context, base string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("git is not installed, which a comparison with an earlier commit needs")
	}
	if _, err := t.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return fmt.Errorf("%s is no git repository, which a comparison with an earlier commit needs", t.here.root)
	}
	hash, err := t.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}")
	if err != nil {
		hint := ": name another with -base"
		if shallow, _ := t.git(ctx, "rev-parse", "--is-shallow-repository"); shallow == "true" {
			hint = " in this shallow clone: git fetch --unshallow brings it"
		}
		return fmt.Errorf("there is no commit %s%s", base, hint)
	}
	t.named = hash[:len("98043b8")]
	t.base = &side{root: filepath.Join(t.dir, "base"), bin: filepath.Join(t.dir, "built")}
	t.worktree = true // also if it fails half way
	_, err = t.git(ctx, "worktree", "add", "--quiet", "--detach", t.base.root, hash)
	if err != nil {
		return err
	}
	t.given, err = t.sameModules(ctx)
	return err
}

// git runs git in this tree and returns its output. The error is one line.
func (t *tool) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", t.here.root}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // git removes what it began
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, lastLine(text))
	}
	return text, nil
}

// close removes what was made.
func (t *tool) close(ctx context.Context) error {
	if t.dir == "" {
		return nil
	}
	var errs []error
	if t.worktree {
		_, _ = t.git(ctx, "worktree", "remove", "--force", "--force", t.base.root) // prune does what this could not
	}
	errs = append(errs, os.RemoveAll(t.dir))
	if t.worktree {
		_, err := t.git(ctx, "worktree", "prune")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// build makes the programs that the probes run.
func (t *tool) build(ctx context.Context, picked []probe) error {
	for _, probe := range picked {
		sides := []*side{t.here}
		if probe.group == beforeAndNow {
			sides = append(sides, t.base)
		}
		for _, side := range sides {
			if err := side.build(ctx, probe.pkg); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure takes n pairs of samples for each probe.
func (t *tool) measure(ctx context.Context, picked []probe, n int, committed ledger) (rep report, failed int) {
	rep.pairs = n
	rep.base = t.named
	rep.committed = committed
	for i := 0; i < len(picked) && ctx.Err() == nil; i++ {
		probe := picked[i]
		fmt.Fprintf(t.stderr, "[%d/%d] %s", i+1, len(picked), probe.name)
		began := clock.Nano()
		err := probe.take(ctx, t, n, &rep)
		fmt.Fprintf(t.stderr, ": %s\n", format.NS(float64(clock.Nano()-began)))
		if err != nil && ctx.Err() == nil {
			failed++
			fmt.Fprintf(t.stderr, "instrument: %s: %v\n", probe.name, err)
		}
	}
	rep.others = t.others
	return rep, failed
}

// take takes up to n pairs of samples, or makes the probe's check, and adds what came
// of it to the report. If a row seems to have fallen behind, as many pairs again
// decide it.
func (p probe) take(ctx context.Context, t *tool, n int, rep *report) (err error) {
	if p.check != nil {
		checked, err := p.check(ctx, t)
		if err == nil {
			rep.checks = append(rep.checks, checked)
		}
		return err
	}
	if p.pairs > 0 {
		n = min(n, p.pairs)
	}
	left, right, done, err := p.open(ctx, t)
	if err != nil {
		return err
	}
	if done != nil {
		defer func() { err = errors.Join(err, done()) }()
	}
	lefts, rights, err := inTurns(ctx, n, left, right)
	if err != nil {
		return err
	}
	rows := rep.of(p, lefts, rights)
	if slices.ContainsFunc(rows, func(r row) bool { return rep.committed.worse(r, rep.base) != "" }) {
		fmt.Fprint(t.stderr, ", seems to be behind: once more")
		more, others, err := inTurns(ctx, n, left, right)
		if err != nil {
			return err
		}
		rows = rep.of(p, slices.Concat(lefts, more), slices.Concat(rights, others))
	}
	rep.add(rows)
	return nil
}
