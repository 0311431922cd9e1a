// Package track writes docs/track-record.md: the defects of published limiters, each
// with the command that finds it. It runs those commands; no figure on the page is typed.
package track

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/adapters/confirm"
	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"

	_ "github.com/quotabench/quotabench/adapters"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// Steps runs the command of each finding and each rebuilt gateway, and returns the steps of the shortest schedules by
// name. A name without a schedule has none. The error lists what is not found any more, and what should be clean and is
// not.
func Steps() (map[string]int, error) {
	steps := map[string]int{}
	var lost error
	for i := range findings {
		finding := &findings[i]
		n, err := finding.shortest()
		steps[finding.name] = n
		lost = errors.Join(lost, err, confirmed(finding.name))
	}
	for i := range rebuilt {
		rebuild := &rebuilt[i]
		n, err := rebuild.shortest()
		steps[rebuild.name] = n
		lost = errors.Join(lost, err)
	}
	for _, limiter := range clean {
		lost = errors.Join(lost, limiter.isClean())
	}
	return steps, lost
}

// confirmed repeats a finding with its library alone.
func confirmed(name string) error {
	confirmation, err := confirm.Lookup(name)
	if err != nil {
		return err
	}
	observed, ok, err := confirm.Embedded(confirmation)
	if err == nil && !ok {
		return fmt.Errorf("%s is not confirmed: %s", name, observed)
	}
	return err
}

// shortest is the number of steps of the shortest schedule; 0 if a run or a simulation finds the defect.
func (f *finding) shortest() (int, error) {
	if f.property != "" {
		return f.explored()
	}
	var err error
	for range mostRuns {
		err = f.measured()
		if err == nil {
			break
		}
	}
	return 0, err
}

// mostRuns are made until one finds it: on a busy machine a run is invalid, or requests less.
const mostRuns = 3

func (f *finding) explored() (int, error) {
	all, err := search(f.command)
	if err != nil {
		return 0, err
	}
	steps := 0
	var claims []string
	policy := f.policy
	for _, search := range all {
		found := search.Found(f.property)
		if found != nil && (policy == "" || policy == search.Policy) && (steps == 0 || len(found.Steps) < steps) {
			policy = search.Policy // another one may break for another reason
			steps = len(found.Steps)
		}
		claims = append(claims, search.Claim)
	}
	if steps == 0 {
		return 0, fmt.Errorf("%s: no schedule breaks %s any more; claims: %q", f.name, f.property, claims)
	}
	return steps, nil
}

// measured fails unless a run breaks a guarantee on leaks.
func (f *finding) measured() error {
	dir, err := os.MkdirTemp("", "track-record")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := output(append(slices.Clone(f.command), "--json", "--out", filepath.Join(dir, "run")))
	if err != nil {
		return err
	}
	var file results.File
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	for i := range file.Runs {
		run := &file.Runs[i]
		for _, clause := range run.Guarantee {
			if run.Audit.Valid && clause.Property == string(quota.PropertyLeak) && clause.Verdict == results.Broken {
				return nil
			}
		}
	}
	return errors.Join(fmt.Errorf("%s: no run breaks the guarantee", f.name), results.Invalid(file.Runs))
}

func (r *rebuild) shortest() (int, error) {
	all, err := search(r.command)
	if err != nil {
		return 0, err
	}
	found := all[0].Found(r.property)
	switch {
	case found != nil:
		return len(found.Steps), nil
	case r.property != "" || len(all[0].Findings) > 0:
		return 0, fmt.Errorf("%s: %q is not the finding: %+v", line(r.command), r.property, all[0].Findings)
	}
	return 0, nil
}

// isClean fails if a search of a clean limiter finds something, or claims nothing.
func (l *limiter) isClean() error {
	all, err := search([]string{"explore", l.strategy})
	for _, search := range all {
		if !passes(search) {
			err = errors.Join(err, fmt.Errorf("%s under %s is not clean: %+v", l.strategy, search.Policy, search))
		}
	}
	return err
}

// passes reports whether a search claims something. On a slow machine one that no claim needs may have had no time.
func passes(search *results.Search) bool {
	if !search.Tried() && !search.Least() {
		return len(search.Findings) == 0
	}
	return len(search.Findings) == 0 && search.Claim != ""
}

// explorations are what [search] has returned, by command: several findings have one.
var explorations = map[string][]*results.Search{}

// search runs an exploration of one strategy.
func search(command []string) ([]*results.Search, error) {
	if all, ok := explorations[line(command)]; ok {
		return all, nil
	}
	text, err := output(append(slices.Clone(command), "--json"))
	if err != nil {
		return nil, err
	}
	var exploration results.Exploration
	if err := json.Unmarshal(text, &exploration); err != nil {
		return nil, err
	}
	if len(exploration.Searches) == 0 {
		return nil, fmt.Errorf("%s: no search", strings.Join(command, " "))
	}
	explorations[line(command)] = exploration.Searches
	return exploration.Searches, nil
}

// output is what a command writes. Exit code 1 says that a guarantee is broken.
func output(command []string) ([]byte, error) {
	var out, log bytes.Buffer
	if code := cli.Main(command, &out, &log); code > 1 && code != 3 {
		return nil, fmt.Errorf("quotabench %s: exit code %d: %s", strings.Join(command, " "), code, log.String())
	}
	return out.Bytes(), nil
}

// line is a command as one types it.
func line(command []string) string {
	words := make([]string, len(command))
	for i, text := range command {
		if strings.ContainsAny(text, " ;=,") && !strings.HasPrefix(text, "-") {
			text = `"` + text + `"`
		}
		words[i] = text
	}
	return strings.Join(words, " ")
}

// versions of the modules that go.mod requires.
func versions(goMod []byte) map[string]string {
	out := map[string]string{}
	for name := range strings.Lines(string(goMod)) {
		if words := strings.Fields(strings.TrimPrefix(name, "require ")); len(words) >= 2 &&
			strings.HasPrefix(words[1], "v") {
			out[words[0]] = words[1]
		}
	}
	return out
}
