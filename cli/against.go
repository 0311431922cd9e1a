package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	seeds "github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// against measures another program and this one in pairs of rounds, in random order, and
// compares them.
type against struct {
	*group.Settings
	cmd      *cobra.Command
	programs [2]string              // the base and the head
	args     []string               // of each round
	dir      string                 // of --out
	rateless []strategies.Selection // that would be measured at a rate, if one were given
	looks    int                    // at the first stage
	files    [3][2]*results.File    // by stage and side
}

// sides by the names of their directories.
var sides = [2]string{"base", "head"}

// runAgainst is run --against.
func runAgainst(cmd *cobra.Command, s *group.Settings, cfg *measure.Config) error {
	a := &against{Settings: s, args: []string{"--rounds", "1"}, looks: 1}
	if cfg.Load == (harness.Load{Loop: harness.Both}) {
		a.args = append(a.args, "--loop", string(workloads.Closed))
		a.rateless = cfg.Strategies
	}
	return a.compareWith(cmd, cfg.Rounds)
}

// compareWith measures both programs in rounds. Each round of a side is a program of its own, so that
// neither has what the other left behind.
func (a *against) compareWith(cmd *cobra.Command, rounds int) error {
	s := a.Settings
	base, err := exec.LookPath(s.Against) //nolint:forbidigo // the user names it
	if err != nil {
		return s.Wrong("against", fmt.Errorf("%q cannot be run: %w", s.Against, errors.Unwrap(err)))
	}
	head, err := os.Executable()
	if err != nil {
		return fail(exit.Failed, err)
	}
	if s.Rank("against") == settings.ByFile {
		return s.Wrong("against", errors.New("give it as a flag: each side is given the same file"))
	}
	if s.History != "" {
		return s.Wrong("history", errors.New("the rounds of two programs have no place of their own in it: leave it out "+
			"with --against"))
	}
	dir, err := session.FreeDir(s)
	if err != nil {
		return err
	}
	for _, side := range sides {
		for _, stage := range []int{1, 2} {
			if err := session.IsFree(s.Set, stageDir(dir, side, stage)); err != nil {
				return err
			}
		}
	}
	a.cmd = cmd
	a.dir = dir
	a.programs = [2]string{base, head}
	for i := range a.programs {
		a.programs[i], err = filepath.Abs(a.programs[i])
		if err != nil {
			return fail(exit.Failed, err)
		}
	}
	defer session.OutlivePipes()()
	return a.compare(rounds, s.Strategies)
}

// compare measures and compares in stages.
func (a *against) compare(rounds int, names []string) error {
	options, err := a.Comparison()
	if err != nil {
		return err
	}
	options.Paired = true
	options.Gates = a.Gates
	comparison, err := compare.Staged(options, rounds, a.looks, names, a.measure)
	if err == nil && a.rateless != nil {
		rate, _ := measure.CommonRate(slices.Concat(a.files[1][0].Runs, a.files[1][1].Runs), a.rateless)
		comparison.Notes = append(comparison.Notes,
			fmt.Sprintf("latency was not measured, since each program would choose a rate of its own: "+
				"give both one, e.g. --rate %g, which run would choose by these figures", rate))
	}
	if err == nil {
		err = a.keep(comparison)
	}
	if err != nil {
		return fail(exit.Failed, err)
	}
	err = showComparison(a.cmd, a.format(), comparison)
	fmt.Fprintf(a.cmd.ErrOrStderr(), "\nwritten to %s: %s, %s\n", a.dir, files.ComparisonName,
		strings.Join(sides[:], ", "))
	return err
}

// format is how the comparison is shown: as text if nothing else is asked for, and in a job of GitHub Actions as its
// annotations, with the table in the job's summary.
func (a *against) format() string {
	switch {
	case a.JSON:
		return document.JSON
	case os.Getenv("GITHUB_ACTIONS") == "true":
		return document.GitHub
	}
	return group.ComparisonFormats()[0]
}

// keep stores the records of both sides, and what the comparison found.
func (a *against) keep(comparison *compare.Comparison) error {
	now := clock.Wall{}.Now().UTC().Format(time.RFC3339Nano)
	for stage, records := range a.files {
		for i, file := range records {
			if file == nil {
				continue
			}
			file.Pairing = fmt.Sprintf("%s, stage %d", now, stage)
			dir := stageDir(a.dir, sides[i], stage)
			if err := errors.Join(os.MkdirAll(dir, 0o755),
				codec.Write(filepath.Join(dir, files.ResultsName), *file)); err != nil {
				return err
			}
		}
	}
	data, err := codec.ComparisonJSON(comparison)
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(a.dir, files.ComparisonName), data)
}

// stageDir is where the records of a side are, of the first stage or the second.
func stageDir(dir, side string, stage int) string {
	if stage > 1 {
		side += "-" + strconv.Itoa(stage)
	}
	return filepath.Join(dir, side)
}

// measure is the [compare.Measure] of two programs.
func (a *against) measure(stage, from, to int, names []string) (out [2]compare.Side, err error) {
	if stage > 1 || from > 1 {
		why := map[int]string{1: "inconclusive, and measured longer", 2: "flagged, and measured again"}
		fmt.Fprintf(a.cmd.ErrOrStderr(), "%s: %s\n", why[stage], strings.Join(names, ", "))
	}
	server.RemoveLeftovers(a.cmd.Context(), "")
	temp, err := server.NewDir("")
	if err != nil {
		return out, err
	}
	defer func() { _ = temp.Remove() }() // what is left of it is of no use
	files := &a.files[stage]
	for round := from; round <= to; round++ {
		for _, side := range a.order(stage, round) {
			fmt.Fprintf(a.cmd.ErrOrStderr(), "[%d/%d] %s\n", round, to, sides[side])
			file, err := a.round(side, filepath.Join(temp.Path, fmt.Sprintf("%d-%s", round, sides[side])), names)
			if err != nil {
				return out, err
			}
			for i := range file.Runs {
				file.Runs[i].Repetition = round
			}
			if files[side] == nil {
				files[side] = file
			} else {
				files[side].Runs = append(files[side].Runs, file.Runs...)
			}
		}
	}
	return a.sidesOf(stage), nil
}

// sidesOf are both sides of a stage. The rounds of a side are judged together, as those of one run are.
func (a *against) sidesOf(stage int) (out [2]compare.Side) {
	for i, file := range a.files[stage] {
		measure.CrossedElsewhere(file.Runs)
		out[i] = compare.Side{Name: filepath.Join(stageDir(a.dir, sides[i], stage), files.ResultsName), File: file}
	}
	return out
}

// order is random in each first of two rounds, and the other one in the second: neither side gains by its place, or by
// a machine that gets slower.
func (a *against) order(stage, round int) []int {
	first := int((seeds.Stream(a.Seed, seeds.Sides, uint64(stage), uint64(round-1)/2) + uint64(round)) & 1)
	return []int{first, 1 - first}
}

// round runs one program for one round.
func (a *against) round(side int, dir string, names []string) (*results.File, error) {
	args := append([]string{a.cmd.Name()}, names...)
	except, variables := a.Environment()
	except = append(except, "against", "out", "rounds", "budget", "quick", "require", "tolerance", "undecided", "json")
	args = append(args, a.Flags(except...)...)
	if a.Quick {
		args = append(args, "--duration="+a.Duration.String())
	}
	if !a.Given("policy") { // of a part of the strategies it could be another one
		args = append(args, "--policy="+a.Policy)
	}
	args = append(args, a.args...)
	args = append(args, "--out", dir)
	cmd := exec.CommandContext(a.cmd.Context(), a.programs[side], args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute // it stops its servers
	cmd.Env = append(os.Environ(), session.NoBitmaps+"=1")
	cmd.Env = append(cmd.Env, variables...)
	var said bytes.Buffer
	cmd.Stdout = io.Discard
	cmd.Stderr = &said
	err := server.RunWithUs(cmd)
	if a.cmd.Context().Err() != nil {
		return nil, fail(exit.Interrupted,
			errors.New("interrupted: pairs of rounds are compared when all have been made, and nothing was written"))
	}
	file, read := codec.Read(filepath.Join(dir, files.ResultsName))
	if read != nil {
		last := strings.TrimSpace(said.String())
		return nil, fail(exit.Failed, fmt.Errorf("%s (%s): %w: %s",
			sides[side], a.programs[side], cmp.Or(err, read), last[strings.LastIndex(last, "\n")+1:]))
	}
	return &file, nil // that it found a broken guarantee, or an invalid figure, is in the record
}
