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

	"github.com/quotabench/quotabench/internal/testenv"
)

const module = "github.com/quotabench/quotabench"

// layers of the module, the lowest first. Each name is a room: a package and all
// below it that are not listed themselves. A package may import its own room and
// lower layers, so two rooms of one layer know nothing of each other.
var layers = [][]string{
	{"quota", "internal/atomicfile", "internal/cancel", "internal/doctest", "internal/exit", "internal/filelock", "internal/frames", "internal/groups", "internal/hooks", "internal/machine", "internal/ordered", "internal/redact", "internal/resp", "internal/seed", "internal/stacks", "internal/stat", "internal/programs", "internal/version", "results/schema"},
	{"oracle", "internal/bubble", "internal/clock", "internal/format", "internal/hold", "internal/killed", "internal/memredis", "internal/network", "internal/options", "internal/overwrite", "internal/start", "internal/testenv", "internal/witness"},
	{"results", "stores", "strategies", "workloads"},
	{"internal/likely"},
	{"internal/fixture", "internal/isolate", "internal/sched", "stores/all", "internal/answer", "internal/figures", "internal/present/text/layout"},
	{"internal/compare", "internal/claims"},
	{"internal/faults", "internal/terminal", "results/codec", "internal/present/export", "internal/present/plot", "internal/present/text"},
	{"internal/settings", "internal/present/html"},
	{"internal/guard", "internal/promise", "results/compare", "results/render"},
	{"harness"},
	{"internal/monitor"},
	{"harness/explore/internal/engine", "strategies/strategytest"},
	{"harness/explore/internal/inproc"},
	{"harness/explore/internal/bubble", "harness/explore/internal/postgres", "harness/explore/internal/service"},
	{"harness/explore", "harness/measure", "harness/sim"},
	{"internal/lint", "internal/metrics", "internal/odds", "internal/shortlist", "internal/sweep", "internal/settings/group"},
	{"internal/session"},
	{"internal/searches"},
	{"cli", "harness/bench", "prove"},
	{"cmd", ""},
}

// importers are the only rooms that may import what a test of a strategy must not
// bring in: renderers, plots and container engines.
var importers = map[string][]string{
	"results/codec":         {"results/render", "internal/settings/group", "internal/session", "internal/searches", "cli"},
	"internal/claims":       {"internal/faults", "internal/present/text", "internal/present/plot", "internal/present/html", "cli"},
	"internal/compare":      {"results/codec", "results/render", "internal/present/text", "internal/settings/group", "internal/session", "internal/searches", "cli", "results/compare"},
	"internal/present/plot": {"results/render", "cli"},
	"internal/present/html": {"results/render", "internal/session", "cli"},
	"internal/present/text": {"internal/present/html", "results/render", "internal/session", "internal/searches", "cli", "prove"},
	"results/render":        {"internal/settings/group", "internal/session", "internal/searches", "cli"},
	"stores/all":            {"internal/settings/group"},
	"stores/container":      {"stores/all"},
}

// judges are the files that ask the oracle for a verdict: the judgement of runs,
// and what explorations and the conformance suite check against it.
var judges = []string{
	"harness/explore/guarantee.go", "harness/explore/internal/engine/truth.go", "harness/judge.go", "strategies/strategytest/book.go",
}

// light are packages that tests of strategies import, and lightModules is how many
// modules they may need together.
var light = []string{"harness/explore", "harness/sim", "strategies/strategytest"}

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

// room is the longest listed name that the package is in, and its layer, or -1.
func room(name string) (room string, layer int) {
	layer = -1
	if inner, ok := strings.CutPrefix(name, "internal/stores/"); ok { // what the module full needs too
		name = "stores/" + inner
	}
	for i, rooms := range layers {
		for _, r := range rooms {
			if (name == r || r != "" && strings.HasPrefix(name, r+"/")) && (layer < 0 || len(r) > len(room)) {
				room, layer = r, i
			}
		}
	}
	return room, layer
}

func TestLayering(t *testing.T) {
	testenv.Sequential(t)
	packages := list(t)
	for _, problem := range slices.Concat(upward(packages), impure(packages), heavy(packages)) {
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
			if bytes.Contains(text, []byte(".Broken(")) && name != "internal/promise" {
				t.Errorf("%s/%s decides clauses by itself: call promise.Clauses", name, f)
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
		p.Imports, p.Deps = slices.Concat(p.Imports, needs), slices.Concat(p.Deps, needs)
		all[p.ImportPath] = &p
		return all
	}
	for what, problems := range map[string][]string{
		"upward":            upward(plant("strategies", module+"/harness")),
		"to a neighbour":    upward(plant("workloads", module+"/strategies")),
		"of a renderer":     upward(plant("harness/sim", module+"/internal/present/plot")),
		"of an unlisted":    upward(plant("quota", module+"/surprise")),
		"impure":            impure(plant("oracle", "github.com/redis/go-redis/v9")),
		"of the module":     impure(plant("quota", module+"/oracle")),
		"of a heavy engine": heavy(plant("harness/explore", slices.Collect(foreign(list(t)))...)),
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

// upward are imports that the layers do not allow.
func upward(packages map[string]*listed) (problems []string) {
	for _, p := range packages {
		from, ok := p.name()
		if !ok {
			continue
		}
		fromRoom, fromLayer := room(from)
		if fromLayer < 0 {
			problems = append(problems, fmt.Sprintf("package %s belongs to no layer: add its room to the list", from))
		}
		for _, path := range p.Imports {
			to, ok := within(path)
			if !ok {
				continue
			}
			toRoom, toLayer := room(to)
			if toRoom != fromRoom && toLayer >= fromLayer || toLayer < 0 {
				problems = append(problems, fmt.Sprintf("%s (layer %d) must not import %s (layer %d)", from, fromLayer, to, toLayer))
			}
			may, limited := importers[to]
			if limited && toRoom != fromRoom && !slices.Contains(may, fromRoom) {
				problems = append(problems, fmt.Sprintf("%s must not import %s: only %q may", from, to, may))
			}
		}
	}
	slices.Sort(problems)
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
