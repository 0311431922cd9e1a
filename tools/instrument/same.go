//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/parallel"
	"github.com/quotabench/quotabench/tools/program"
)

// checked is what had to be the same on both sides.
type checked struct {
	what           string
	compared, same int
	how            string
	// explained differ for a reason that is listed, unexplained for none. Each is one line.
	explained, unexplained []string
}

func (c *checked) lines() []string {
	out := []string{fmt.Sprintf("%s: %d of %d compared are the same; %s", strings.ToUpper(c.what), c.same, c.compared,
		c.how)}
	for _, text := range c.explained {
		out = append(out, "  "+text)
	}
	for _, text := range c.unexplained {
		out = append(out, "  FAILS, and no reason is listed: "+text)
	}
	return out
}

// differ notes that something is not the same, with the reason if there is one.
func (c *checked) differ(reasons map[string]string, name, how string) {
	if why := reasons[name]; why != "" {
		c.explained = append(c.explained, name+": "+how+": "+why)
		return
	}
	c.unexplained = append(c.unexplained, name+": "+how)
}

// readReasons reads why things differ from a commit, by check and name.
func readReasons(path, base, check string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comma = '\t'
	reader.FieldsPerRecord = 4
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]string{}
	for _, line := range lines {
		if line[0] == base && line[1] == check {
			out[line[2]] = line[3]
		}
	}
	return out, nil
}

// reasonsOf are those of a check against the commit in force.
func (t *tool) reasonsOf(check string) (map[string]string, error) {
	return readReasons(filepath.Join(t.here.root, "internal", "instrument", "differences.tsv"), t.named, check)
}

// checks of what both sides have to agree in.
const (
	sameSeed       = "same seed, same simulation"
	sameSchedules  = "counterexamples in no more steps"
	comparedRounds = 1000 // requests of each simulation
)

var presets = []string{"adr-005-day", "adr-008-month", "adr-008-month-end"}

// simulated is what a simulation came to. Trace is a hash of all that happened, if
// the side records one.
type simulated struct {
	Trace                                string
	Issued, Admitted, Rejected, Degraded int64
	Errors                               int64
	Leak                                 struct{ Units int64 }
	FalseRejects                         *struct{ Count int64 } `json:"false_rejects"`
}

func (s *simulated) decisions() string {
	wrong := int64(0)
	if s.FalseRejects != nil {
		wrong = s.FalseRejects.Count
	}
	return fmt.Sprintf("%d of %d admitted, %s, %d units leaked, %d false rejects", s.Admitted, s.Issued,
		format.Plural(s.Errors, "error", "errors"), s.Leak.Units, wrong)
}

// compareSimulations simulates every strategy that both sides have under every preset,
// from one seed, and compares the hashes of all that happened, or what was decided if
// one side records none.
func compareSimulations(ctx context.Context, t *tool) (c checked, err error) {
	c.what = sameSeed
	reasons, err := t.reasonsOf(sameSeed)
	if err != nil {
		return c, err
	}
	strategies, err := t.shared(ctx)
	if err != nil {
		return c, err
	}
	type job struct{ preset, strategy string }
	var jobs []job
	for _, text := range presets {
		for _, s := range strategies {
			jobs = append(jobs, job{text, s})
		}
	}
	type result struct {
		base, here *simulated
		err        error
	}
	hashes := 0
	for i, r := range parallel.Do(runtime.NumCPU(), len(jobs), func(i int) (r result) {
		for _, s := range []*side{t.base, t.here} {
			got, err := t.simulate(ctx, s, jobs[i].strategy, jobs[i].preset)
			if err != nil || got == nil {
				r.err = err
				return r
			}
			if s == t.base {
				r.base = got
			} else {
				r.here = got
			}
		}
		return r
	}) {
		if r.err != nil {
			return c, r.err
		}
		name := jobs[i].strategy + " under " + jobs[i].preset
		switch {
		case r.base == nil: // it could not be simulated before
			continue
		case r.here == nil:
			c.compared++
			c.differ(reasons, name, "simulated before, and refused here")
			continue
		}
		c.compared++
		was := r.base.decisions()
		is := r.here.decisions()
		if r.base.Trace != "" && r.here.Trace != "" {
			hashes++
			was = r.base.Trace
			is = r.here.Trace
		}
		if was == is {
			c.same++
		} else {
			c.differ(reasons, name, was+" before, and here "+is)
		}
	}
	if c.compared == 0 {
		return c, fmt.Errorf("%s simulates nothing under any preset", t.named)
	}
	c.how = fmt.Sprintf("every strategy that both sides simulate, under every preset, %d requests from seed 1; %d were "+
		"compared by the hash of all that happened, the others by what was decided, since %s records no hash", comparedRounds,
		hashes, t.named)
	if hashes == c.compared {
		c.how = fmt.Sprintf("every strategy that both sides simulate, under every preset, %d requests from seed 1, by the "+
			"hash of all that happened", comparedRounds)
	}
	return c, nil
}

// simulate returns nil if the side cannot simulate the strategy under the preset.
func (t *tool) simulate(ctx context.Context, s *side, strategy, preset string) (got *simulated, err error) {
	dir, err := os.MkdirTemp(t.dir, "same-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	_, err = execute(ctx, dir, s.built[cli], "sim", strategy, "--preset", preset, "--requests", fmt.Sprint(comparedRounds),
		"--seed", "1", "--out", "out")
	if code := exitCode(err); code == program.Usage {
		return nil, nil
	} else if err != nil && code != 1 && code != 3 { // what it found, which is recorded
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err != nil {
		return nil, err
	}
	var file struct{ Runs []simulated }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("sim %s --preset %s: %w", strategy, preset, err)
	}
	if len(file.Runs) != 1 {
		return nil, fmt.Errorf("sim %s --preset %s: results.json holds %d runs, and one was expected", strategy, preset,
			len(file.Runs))
	}
	return &file.Runs[0], nil
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// shared are the names of the strategies that both sides have.
func (t *tool) shared(ctx context.Context) ([]string, error) {
	var names [2]map[string]bool
	for i, s := range []*side{t.base, t.here} {
		out, err := execute(ctx, t.dir, s.built[cli], "list", "strategies")
		if err != nil {
			return nil, err
		}
		names[i] = strategyNames(string(out.stdout))
	}
	maps.DeleteFunc(names[0], func(name string, _ bool) bool { return !names[1][name] })
	if len(names[0]) == 0 {
		return nil, errors.New("the two sides have no strategy in common")
	}
	return slices.Sorted(maps.Keys(names[0])), nil
}

// strategyNames reads the first table of quotabench list strategies: a name begins a
// line that is indented by two cells.
func strategyNames(text string) map[string]bool {
	names := map[string]bool{}
	_, text, _ = strings.Cut(text, "STRATEGIES\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(rest, " ") {
			names[strings.Fields(rest)[0]] = true
		}
	}
	return names
}

// searchedFor are the properties whose counterexamples are compared.
const searchedFor = "leak,guarantee,false-reject,drift,ttl,stranded,negative"

// compareCounterexamples searches every strategy that both sides can search without a
// server, and compares the steps of the shortest schedule found for each property.
func compareCounterexamples(ctx context.Context, t *tool) (c checked, err error) {
	c.what = sameSchedules
	c.how = "the shortest schedule of two clients that take once, for each property of every strategy that both sides " +
		"search without a server, up to 20,000 states"
	reasons, err := t.reasonsOf(sameSchedules)
	if err != nil {
		return c, err
	}
	strategies, err := t.shared(ctx)
	if err != nil {
		return c, err
	}
	for _, strategy := range strategies {
		var steps [2]map[string]int
		for i, s := range []*side{t.base, t.here} {
			steps[i], err = t.findings(ctx, s, strategy)
			if err != nil {
				return c, err
			}
		}
		switch {
		case steps[0] == nil: // it could not be searched before
			continue
		case steps[1] == nil:
			c.compared++
			c.differ(reasons, strategy, "searched before, and refused here")
			continue
		}
		for _, property := range slices.Sorted(maps.Keys(steps[0])) {
			c.compared++
			was := steps[0][property]
			is := steps[1][property]
			switch name := strategy + ", " + property; {
			case is == 0:
				c.differ(reasons, name, format.Plural(int64(was), "step", "steps")+" before, and none found here")
			case is > was:
				c.differ(reasons, name, fmt.Sprintf("%d steps before, and here %d", was, is))
			default:
				c.same++
			}
		}
	}
	if c.compared == 0 {
		return c, fmt.Errorf("%s finds nothing in any strategy", t.named)
	}
	return c, nil
}

// findings are the steps of what is found, by property; nil if the side cannot
// search the strategy.
func (t *tool) findings(ctx context.Context, s *side, strategy string) (map[string]int, error) {
	args := []string{"explore", strategy, "--property", searchedFor, "--script", "take", "--max-states", "20000",
		"--postgres", "embedded", "--json"}
	out, err := execute(ctx, t.dir, s.built[cli], args...)
	if code := exitCode(err); code == program.Usage {
		return nil, nil
	} else if code == 1 || code == 3 { // a broken guarantee, or something undecided, is what is asked for
		err = nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Searches []struct {
			Findings []struct {
				Property string
				Steps    []json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(out.stdout, &file); err != nil {
		return nil, fmt.Errorf("explore %s: %w", strategy, err)
	}
	if len(file.Searches) == 0 {
		return nil, nil
	}
	steps := map[string]int{}
	for _, search := range file.Searches {
		for _, f := range search.Findings {
			steps[f.Property] = len(f.Steps)
		}
	}
	return steps, nil
}
