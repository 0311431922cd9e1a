// Package track writes docs/track-record.md: what was found in published limiters, each
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

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/results"

	_ "github.com/quotabench/quotabench/adapters"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// evidence is what a finding's command found.
type evidence struct {
	// steps of the shortest schedule; 0 if none is known.
	steps int
	// consequence in one sentence, of the record.
	consequence string
	// odds are how often a simulation at a stated rate met it; empty if there was none.
	odds string
}

// evidence runs the command, and fails if it does not find what it is there for.
func (f *finding) evidence() (evidence, error) {
	if f.property == "" {
		var e evidence
		var err error
		for range mostRuns {
			if e.consequence, err = f.measured(); err == nil {
				break
			}
		}
		return e, err
	}
	return f.explored()
}

// mostRuns are made until one finds it: on a busy machine a run is invalid, or asks for less.
const mostRuns = 3

// explored returns the steps and the consequence of the shortest schedule.
func (f *finding) explored() (evidence, error) {
	all, err := search(f.command)
	if err != nil {
		return evidence{}, err
	}
	var e evidence
	var claims []string
	policy := f.policy
	for _, s := range all {
		found := s.Found(f.property)
		if found != nil && (policy == "" || policy == s.Policy) && (e.steps == 0 || len(found.Steps) < e.steps) {
			policy = s.Policy // another one may break for another reason
			e = evidence{len(found.Steps), sentence(found.Detail), found.OddsAtRate()}
		}
		claims = append(claims, s.Claim)
	}
	if e.steps > 0 {
		return e, nil
	}
	return e, fmt.Errorf("%s: no schedule breaks %s any more; claims: %q", f.name, f.property, claims)
}

// measured returns the consequence of a run.
func (f *finding) measured() (string, error) {
	dir, err := os.MkdirTemp("", "track-record")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err := output(append(slices.Clone(f.command), "--json", "--out", filepath.Join(dir, "run")))
	if err != nil {
		return "", err
	}
	var file results.File
	if err := json.Unmarshal(text, &file); err != nil {
		return "", err
	}
	var worst, limit, promised int64
	for i := range file.Runs {
		r := &file.Runs[i]
		for _, c := range r.Guarantee {
			if r.Audit.Valid && c.Property == results.LeakProperty && c.Verdict == results.Broken {
				worst, limit, promised = max(worst, c.Certain), r.Params.Limit, c.Bound
			}
		}
	}
	if worst == 0 {
		return "", errors.Join(fmt.Errorf("%s: none of %d runs breaks the guarantee", f.name, mostRuns), results.Invalid(file.Runs))
	}
	calls := "calls"
	if worst == 1 {
		calls = "call"
	}
	said := fmt.Sprintf("%d %s over the limit of %d in the worst window", worst, calls, limit)
	if promised > 0 {
		said += fmt.Sprintf(", where up to %d may be", promised)
	}
	return said + ".", nil
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
	var x results.Exploration
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, err
	}
	if len(x.Searches) == 0 {
		return nil, fmt.Errorf("%s: no search", strings.Join(command, " "))
	}
	explorations[line(command)] = x.Searches
	return x.Searches, nil
}

// output is what a command writes. Exit code 1 says that a guarantee is broken.
func output(command []string) ([]byte, error) {
	var out, log bytes.Buffer
	if code := cli.Main(command, &out, &log); code > 1 && code != 3 {
		return nil, fmt.Errorf("quotabench %s: exit code %d: %s", strings.Join(command, " "), code, log.String())
	}
	return out.Bytes(), nil
}

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string { return capital(s) + "." }

func capital(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }

// line is a command as one types it.
func line(command []string) string {
	words := make([]string, len(command))
	for i, w := range command {
		if strings.ContainsAny(w, " ;=,") && !strings.HasPrefix(w, "-") {
			w = `"` + w + `"`
		}
		words[i] = w
	}
	return "go run ./cmd/quotabench " + strings.Join(words, " ")
}

// versions of the modules that go.mod requires.
func versions(goMod []byte) map[string]string {
	out := map[string]string{}
	for l := range strings.Lines(string(goMod)) {
		if words := strings.Fields(strings.TrimPrefix(l, "require ")); len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			out[words[0]] = words[1]
		}
	}
	return out
}
