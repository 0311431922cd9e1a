package harness_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

const module = "github.com/quotabench/quotabench"

// groups of the module's packages, and which other groups each may import. A group is a folder with all below it that
// is no group itself. Each group imports only groups above it in this list, and some of these only.
var groups = []struct {
	name    string
	imports []string
}{
	{"quota", nil},
	{"internal/kit", []string{"quota"}},
	{"internal/codes", nil},
	{"internal/trouble", []string{"quota"}},
	{"oracle", []string{"quota"}},
	{"workloads", []string{"quota", "internal/kit"}},
	{"strategies", []string{"quota", "internal/kit", "internal/codes"}},
	{"internal/testkit", []string{"quota", "strategies"}},
	{"results", []string{"quota", "internal/kit", "internal/codes", "internal/trouble"}},
	{"internal/fakeredis", []string{"internal/kit"}},
	{"internal/proxy", []string{"internal/kit", "internal/fakeredis"}},
	{"internal/trouble/kill", []string{"internal/fakeredis"}},
	{"internal/trouble/network", []string{"internal/trouble"}},
	{"internal/trouble/tamper", []string{"internal/trouble"}},
	{"internal/host", []string{"internal/kit"}},
	{"stores", []string{"quota", "internal/kit", "internal/fakeredis", "internal/trouble/kill",
		"internal/trouble/network", "internal/host"}},
	{"stores/container", []string{"internal/kit", "internal/host"}},
	{"stores/all", []string{"stores", "stores/container"}},
	{"internal/virtual", []string{"quota", "internal/kit", "strategies"}},
	{"internal/contain", []string{"quota", "internal/kit", "strategies", "internal/fakeredis", "internal/virtual"}},
	{"internal/verdict", []string{"quota", "oracle", "results"}},
	{"internal/report", []string{"quota", "internal/kit", "internal/codes", "internal/trouble", "strategies", "results"}},
	{"results/codec", []string{"internal/kit", "internal/codes", "results", "internal/report"}},
	{"results/render", []string{"quota", "internal/kit", "internal/codes", "results", "internal/report", "results/codec"}},
	{"results/compare", []string{"results", "internal/report"}},
	{"harness", slices.Concat(foundations, []string{"internal/contain", "internal/verdict"})},
	{"strategies/strategytest", []string{"quota", "internal/kit", "oracle", "strategies", "results", "internal/fakeredis",
		"stores", "internal/contain", "internal/verdict"}},
	{"internal/monitor", slices.Concat(runners, []string{"harness"})},
	{"harness/measure", slices.Concat(runners, []string{"harness", "internal/monitor"})},
	{"harness/sim", slices.Concat(runners, []string{"harness"})},
	{"explore", slices.Concat(runners, []string{"harness"})},
	{"internal/advice", slices.Concat(runners, []string{"harness"})},
	{"internal/app", applications},
	{"harness/bench", applications},
	{"prove", slices.Concat(applications, []string{"strategies/strategytest"})},
	{"cli", slices.Concat(applications, []string{"internal/app"})},
	{"cmd", []string{"strategies", "cli"}},
	{"", []string{"strategies", "harness/bench", "cmd"}},
}

// What several groups may import.
var (
	foundations = []string{"quota", "internal/kit", "oracle", "workloads", "strategies", "results",
		"internal/codes", "internal/trouble", "internal/trouble/kill", "internal/trouble/network", "internal/trouble/tamper",
		"stores"}
	runners = slices.Concat(foundations,
		[]string{"internal/fakeredis", "internal/proxy", "internal/host", "internal/virtual", "internal/contain", "internal/verdict"})
	applications = slices.Concat(runners, []string{
		"stores/all", "internal/report", "results/codec", "results/render", "results/compare",
		"harness", "harness/measure", "harness/sim", "explore", "internal/advice",
	})
)

// judges are the files that ask the oracle for a verdict: the judgement of runs,
// what explorations and the conformance suite check against it, and the search for
// the first moment of what a judgement has found.
var judges = []string{
	"explore/guarantee.go", "explore/internal/engine/truth.go", "harness/judge.go", "prove/moment.go",
	"strategies/strategytest/book.go",
}

// light are packages that tests of strategies import, and lightModules is how many
// modules they may need together.
var light = []string{"explore", "harness/sim", "strategies/strategytest"}

const lightModules = 20

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir        string
	Standard               bool
	Module                 *struct{ Path string }
	GoFiles, Imports, Deps []string
}

// name is the package's path within this module. ok is false for others.
func (p *listed) name() (name string, ok bool) { return within(p.ImportPath) }

func within(path string) (name string, ok bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// groupOf is the longest name of a group that the package is in, and the place of that group in the list; -1 for none.
func groupOf(name string) (place int) {
	if inner, ok := strings.CutPrefix(name, "internal/stores/"); ok { // what the module full needs too
		name = "stores/" + inner
	}
	place = -1
	for i, group := range groups {
		inside := name == group.name || group.name != "" && strings.HasPrefix(name, group.name+"/")
		if inside && (place < 0 || len(group.name) > len(groups[place].name)) {
			place = i
		}
	}
	return place
}

func TestLayering(t *testing.T) {
	testenv.Sequential(t)
	packages := list(t)
	for _, problem := range slices.Concat(unordered(), forbidden(packages), impure(packages), heavy(packages)) {
		t.Error(problem)
	}
	var asking []string
	for _, p := range packages {
		name, ok := p.name()
		if !ok || name == "oracle" {
			continue
		}
		for _, f := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("oracle.Judge")) {
				asking = append(asking, name+"/"+f)
			}
			if bytes.Contains(text, []byte(".Broken(")) && name != "internal/verdict" {
				t.Errorf("%s/%s decides clauses by itself: call verdict.Clauses", name, f)
			}
		}
	}
	slices.Sort(asking)
	if !slices.Equal(asking, judges) {
		t.Errorf("verdicts of the oracle are asked for in %q, not in %q: harness.Judge judges runs", asking, judges)
	}
}

// TestLayeringFindsFaults plants an import of each kind that is wrong.
func TestLayeringFindsFaults(t *testing.T) {
	testenv.Sequential(t)
	plant := func(name string, needs ...string) map[string]*listed {
		all := list(t)
		p := *all[module+"/"+name]
		p.Imports = slices.Concat(p.Imports, needs)
		p.Deps = slices.Concat(p.Deps, needs)
		all[p.ImportPath] = &p
		return all
	}
	for what, problems := range map[string][]string{
		"upward":            forbidden(plant("strategies", module+"/harness")),
		"to a neighbour":    forbidden(plant("workloads", module+"/strategies")),
		"of a renderer":     forbidden(plant("harness/sim", module+"/internal/report/plot")),
		"of an unlisted":    forbidden(plant("quota", module+"/surprise")),
		"impure":            impure(plant("oracle", "github.com/redis/go-redis/v9")),
		"of the module":     impure(plant("quota", module+"/oracle")),
		"of a heavy engine": heavy(plant("explore", slices.Collect(foreign(list(t)))...)),
	} {
		if len(problems) == 0 {
			t.Errorf("an import %s is not found", what)
		}
	}
}

// foreign are all packages of other modules.
func foreign(packages map[string]*listed) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for path, p := range packages {
			if p.Module != nil && p.Module.Path != module && !yield(path) {
				return
			}
		}
	}
}

// forbidden are imports that the list of groups does not allow.
func forbidden(packages map[string]*listed) (problems []string) {
	for _, p := range packages {
		from, ok := p.name()
		if !ok {
			continue
		}
		importing := groupOf(from)
		if importing < 0 {
			problems = append(problems, fmt.Sprintf("package %s belongs to no group: add its folder to the list", from))
			continue
		}
		for _, path := range p.Imports {
			to, ok := within(path)
			if !ok {
				continue
			}
			imported := groupOf(to)
			if imported == importing {
				continue
			}
			if imported < 0 || !slices.Contains(groups[importing].imports, groups[imported].name) {
				problems = append(problems, fmt.Sprintf("%s must not import %s: group %q may import %q", from, to,
					groups[importing].name, groups[importing].imports))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// unordered are groups that may import a group further down in the list.
func unordered() (problems []string) {
	var above []string
	for _, group := range groups {
		for _, name := range group.imports {
			if !slices.Contains(above, name) {
				problems = append(problems, fmt.Sprintf("group %q may import %q, which is not above it", group.name, name))
			}
		}
		above = append(above, group.name)
	}
	return problems
}

// impure are dependencies of quota and of the oracle that are not of the standard
// library, other than that of the oracle on quota.
func impure(packages map[string]*listed) (problems []string) {
	for _, name := range []string{"quota", "oracle"} {
		for _, dep := range packages[module+"/"+name].Deps {
			vocabulary := name == "oracle" && dep == module+"/quota"
			if p := packages[dep]; (p == nil || !p.Standard) && !vocabulary {
				problems = append(problems, fmt.Sprintf("%s must not need %s", name, dep))
			}
		}
	}
	return problems
}

// heavy says where the light packages need too many modules.
func heavy(packages map[string]*listed) []string {
	modules := map[string]bool{}
	for _, name := range light {
		for _, dep := range packages[module+"/"+name].Deps {
			if p := packages[dep]; p != nil && p.Module != nil && p.Module.Path != module {
				modules[p.Module.Path] = true
			}
		}
	}
	if len(modules) > lightModules {
		return []string{fmt.Sprintf("%q need %d modules, more than %d: %v", light, len(modules), lightModules, modules)}
	}
	return nil
}

// list is all packages of this module and all that they need, by import path. The
// map is the caller's, its packages are shared.
func list(t *testing.T) map[string]*listed {
	t.Helper()
	packages, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(packages)
}

var listOnce = sync.OnceValues(func() (map[string]*listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,Module,GoFiles,Imports,Deps", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
})
