//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/tools/program"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestVerdict plants pairs and requires their ratios and what is said of them.
func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		m           metric
		left, right []float64
		ratios      []float64
		verdict     string
	}{
		"less is better, all less": {metric{}, []float64{10, 20, 40}, []float64{5, 18, 30}, []float64{0.5, 0.75, 0.9},
			faster},
		"less is better, all more": {metric{}, []float64{10, 20}, []float64{11, 40}, []float64{1.1, 2}, slower},
		"more is better, all more": {metric{more: true}, []float64{10, 20}, []float64{11, 40}, []float64{1.1, 2}, faster},
		"more is better, all less": {metric{more: true}, []float64{10, 20}, []float64{5, 10}, []float64{0.5, 0.5},
			slower},
		"one pair on the other side": {metric{}, []float64{10, 10, 10}, []float64{1, 1, 11}, []float64{0.1, 0.1, 1.1},
			notApart},
		"one pair alike": {metric{}, []float64{10, 10}, []float64{1, 10}, []float64{0.1, 1}, notApart},
		"medians differ, no pair does": {metric{}, []float64{1, 10, 100}, []float64{1, 10, 100}, []float64{1, 1, 1},
			notApart},
		"memory":               {metric{unit: mebibytes}, []float64{10}, []float64{20}, []float64{2}, moreMemory},
		"allocations":          {metric{unit: allocations}, []float64{10}, []float64{5}, []float64{0.5}, lessMemory},
		"nothing to divide by": {metric{}, []float64{0, 10}, []float64{1, 5}, nil, noRatio},
	} {
		r := row{metric: c.m, left: c.left, right: c.right}
		if got := r.ratios(); !slices.Equal(got, c.ratios) || r.verdict() != c.verdict {
			t.Errorf("%s: %v, %q, want %v, %q", name, got, r.verdict(), c.ratios, c.verdict)
		}
	}
}

func TestRow(t *testing.T) {
	names := [2]string{"abc", "here"}
	some := sample{"x": 3000, "y": 1}
	none := sample{"y": 2}
	m := metric{key: "x", per: 1000}
	if r := newRow(m, beforeAndNow, names, []sample{some, some}, []sample{some, {"x": 1500}}); r.missing != "" ||
		!slices.Equal(r.left, []float64{3, 3}) || !slices.Equal(r.right, []float64{3, 1.5}) {
		t.Errorf("%+v", r)
	}
	for want, samples := range map[string][2][]sample{
		"missing: abc":          {{none, none}, {some, some}},
		"missing: here":         {{some, some}, {some, none}},
		"missing: abc and here": {{none, none}, {none, none}},
	} {
		r := newRow(m, beforeAndNow, names, samples[0], samples[1])
		if r.verdict() != want || r.ratios() != nil {
			t.Errorf("%+v: %q, want %q", samples, r.verdict(), want)
		}
		if cells := new(report).cells(r); cells[4] != "-" {
			t.Errorf("%s: a ratio %q", want, cells[4])
		}
	}
}

func TestMedianAndDigits(t *testing.T) {
	if median([]float64{9, 1, 5}) != 5 || median([]float64{8, 1, 2, 4}) != 3 {
		t.Error("the median is wrong")
	}
	for x, want := range map[float64]string{0: "0.00", 0.000213: "0.000213", 0.98765: "0.988", 1.5: "1.50",
		123456.7: "123,457"} {
		if got := digits(x); got != want {
			t.Errorf("%v is printed as %q, want %q", x, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	rep := report{base: "abc", pairs: 2, others: []float64{0.01, 0.02, 0.5}}
	rep.add(rep.of(probe{metrics: []metric{{what: "speed", key: "x", unit: "1/s", more: true, wanted: 2}}},
		[]sample{{"x": 1}, {"x": 2}}, []sample{{"x": 2}, {"x": 8}}))
	var out strings.Builder
	rep.print(&out)
	for _, want := range []string{"speed", "abc", "here / abc,", "1.50", "5.00", "3.00 [2.00, 4.00] ≥ 2 - faster, met",
		"2 pairs", "one row of 2", "took 2.00 %", "50.0 %"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestInTurns(t *testing.T) {
	var order strings.Builder
	say := func(name string) turn {
		return func(context.Context) (sample, error) {
			order.WriteString(name)
			return sample{name: float64(order.Len())}, nil
		}
	}
	as, bs, err := inTurns(t.Context(), 3, say("a"), say("b"))
	if err != nil || order.String() != "abbaab" {
		t.Errorf("%s, %v", order.String(), err)
	}
	if as[1]["a"] != 4 || bs[1]["b"] != 3 {
		t.Errorf("the second pair is %v and %v", as[1], bs[1])
	}
}

func TestBenchmarks(t *testing.T) {
	got, err := benchmarks(&output{stdout: []byte("goos: linux\nBenchmarkCommands/incr-16\n" +
		"BenchmarkCommands/incr-16  \t  100\t  12.5 ns/op\t 8e+06 commands/s\n" +
		"BenchmarkSimulated/incr-expire-atomic \t 1\t 0 ns/op\nBenchmarkX-2 --- SKIP: none here\nPASS\n")})
	want := sample{"BenchmarkCommands/incr ns/op": 12.5, "BenchmarkCommands/incr commands/s": 8e6,
		"BenchmarkSimulated/incr-expire-atomic ns/op": 0}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := benchmarks(&output{stdout: []byte("BenchmarkX-2 1 fast ns/op\n")}); err == nil {
		t.Error("a result without a number is no error")
	}
}

func recordOf(t *testing.T, text string) *output {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "out", "results.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &output{dir: dir}
}

// TestResults reads the same figures from records of both schemas.
func TestResults(t *testing.T) {
	closedOnes := sample{"throughput": 200, "client CPU": 7, "bare loop": 400, "by bare loop": 0.5, "service p50": 11,
		"service p99": 21}
	openOnes := sample{"throughput": 200, "client CPU": 0, "response p50": 11, "response p99": 21, "service p50": 1,
		"service p99": 2}
	for name, c := range map[string]struct {
		text string
		want sample
	}{
		"schema 1, closed": {`{"schema":1,"runs":[
			{"params":{"loop":"closed"},"throughput_per_s":100,"reference_per_s":200,"latency_ns":{"p50":10,"p99":20},"cost":{"client_cpu_ns":9}},
			{"params":{"loop":"closed"},"throughput_per_s":200,"reference_per_s":400,"latency_ns":{"p50":11,"p99":21},"cost":{"client_cpu_ns":7}},
			{"params":{"loop":"closed"},"throughput_per_s":300,"reference_per_s":600,"latency_ns":{"p50":12,"p99":22},"cost":{"client_cpu_ns":5}}]}`, closedOnes},
		"schema 2, closed": {`{"schema":2,"runs":[
			{"params":{"loop":"closed"},"throughput_per_s":200,"reference_per_s":400,"service_ns":{"p50":11,"p99":21},"cost":{"client_cpu_ns":7}}]}`, closedOnes},
		"schema 1, open": {`{"schema":1,"runs":[{"params":{"loop":"open"},"throughput_per_s":200,
			"latency_ns":{"p50":11,"p99":21},"service_ns":{"p50":1,"p99":2}}]}`, openOnes},
		"schema 2, open": {`{"schema":2,"runs":[{"params":{"loop":"open"},"throughput_per_s":200,
			"response_ns":{"p50":11,"p99":21},"service_ns":{"p50":1,"p99":2}}]}`, openOnes},
	} {
		if got, err := results(recordOf(t, c.text)); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	for _, text := range []string{`{"schema":3,"runs":[{}]}`, `{"schema":2,"runs":[]}`, `{`} {
		if got, err := results(recordOf(t, text)); err == nil {
			t.Errorf("%s gives %v", text, got)
		}
	}
}

func TestSearches(t *testing.T) {
	got, err := searches(&output{cpu: 3 * time.Second, wall: 2 * time.Second, stdout: []byte(`{"searches":[{"runs":1500,"states":400},{"runs":1,"states":2}]}`)})
	if err != nil || got["user"] != 3 || got["wall"] != 2 || got["states"] != 402 {
		t.Errorf("%v, %v, want 3 s of CPU, 2 s and 402 states", got, err)
	}
	if _, err := searches(&output{stdout: []byte(`{"searches":[]}`)}); err == nil {
		t.Error("an exploration without a search is no error")
	}
}

func TestFromCSV(t *testing.T) {
	const names = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	got, err := fromCSV(names + `"INCR","150375.94","0.171","0.080","0.167","0.215","0.303","0.855"` + "\n")
	want := sample{"throughput": 150375.94, "service p50": 0.167 * 1e6, "service p99": 0.303 * 1e6}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", names, `"INCR","150375.94"` + "\n", "\"test\",\"rps\"\n\"INCR\",\"1\"\n", names + `"INCR","a","0","0","0","0","0","0"`} {
		if got, err := fromCSV(text); err == nil {
			t.Errorf("%q gives %v", text, got)
		}
	}
}

// TestLoadBy runs redis-benchmark on a server of ours, both confined if the system
// allows it.
func TestLoadBy(t *testing.T) {
	program := testenv.Program(t, "redis-benchmark")
	server := storetest.Redis(t)
	on := ""
	if allowed, ok := cores.Allowed(); ok {
		on = cores.Of(allowed[0]).String()
	}
	tool := &tool{dir: t.TempDir()}
	got, err := tool.loadBy(t.Context(), server, on, on, program, flagsOf(server, 4, 2000))
	if err != nil || got["throughput"] <= 0 || got["service p50"] <= 0 || got["service p99"] < got["service p50"] {
		t.Errorf("%v, %v", got, err)
	}
	if info, err := server.Stats(t.Context()); err != nil || info.Commands < 2000 {
		t.Errorf("the server counted %+v, %v", info, err)
	}
	if allowed, ok := cores.Allowed(); ok && on != "" && len(allowed) == 1 && runtime.NumCPU() > 1 {
		t.Errorf("this process is still on core %s", allowed)
	}
}

func TestPick(t *testing.T) {
	every := []probe{{name: "short"}, {name: "whole", when: long}, {name: "aside", when: onlyNamed}}
	for want, c := range map[string]struct {
		only     string
		withLong bool
	}{"short": {"", false}, "short whole": {"", true}, "aside": {"aside", false}, "whole": {"^wh", false}} {
		got, err := pick(every, c.only, c.withLong)
		var names []string
		for _, p := range got {
			names = append(names, p.name)
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%+v: %v, %v, want %s", c, names, err, want)
		}
	}
	all := []probe{{name: "one"}, {name: "two"}}
	if got, err := pick(all, "^t", false); err != nil || len(got) != 1 || got[0].name != "two" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := pick(all, "three", false); err == nil || !strings.Contains(err.Error(), "one, two") {
		t.Errorf("%v", err)
	}
	if _, err := pick(all, "(", false); err == nil {
		t.Error("a bad pattern is no error")
	}
}

// TestMovedPackage finds a package of a tree of before it moved.
func TestMovedPackage(t *testing.T) {
	old := &side{root: t.TempDir()}
	now := &side{root: t.TempDir()}
	for _, file := range []string{
		filepath.Join(old.root, "harness", "a.go"),
		filepath.Join(now.root, "harness", "a.go"), filepath.Join(now.root, "harness", "measure", "a.go"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		s         *side
		pkg, want string
	}{{old, "harness/measure", "harness"}, {now, "harness/measure", "harness/measure"}, {old, "harness/sim", ""}} {
		got, ok := c.s.folder(c.pkg)
		if want := filepath.Join(c.s.root, c.want); ok != (c.want != "") || ok && got != want {
			t.Errorf("%s is at %q, %v, want %q", c.pkg, got, ok, want)
		}
	}
}

func TestKnows(t *testing.T) {
	s := &side{helps: map[string]string{"run": "Flags:\n      --loop string   closed: --open too\n  -h, --help   help\n"}}
	for flag, want := range map[string]bool{"--loop": true, "--open": false, "--lo": false, "--help": true} {
		if got, err := s.knows(t.Context(), "run", flag); err != nil || got != want {
			t.Errorf("%s: %v, %v", flag, got, err)
		}
	}
}

// TestProbes requires of each probe what a typing error would break: a name and keys
// of its own, and a benchmark that this tree has.
func TestProbes(t *testing.T) {
	names := map[string]bool{}
	what := map[string]bool{}
	for _, p := range probes() {
		if names[p.name] || (len(p.metrics) == 0) == (p.check == nil) {
			t.Errorf("%s: named twice, or without metrics", p.name)
		}
		names[p.name] = true
		folder, ok := (&side{root: filepath.Join("..", "..")}).folder(p.pkg)
		if !ok {
			t.Errorf("%s: there is no package %s", p.name, p.pkg)
		}
		for _, m := range p.metrics {
			if id := m.what + ", " + m.unit; what[id] { // it names the row in the committed file
				t.Errorf("%s is there twice", id)
			} else {
				what[id] = true
			}
			name, _, _ := strings.Cut(strings.Fields(m.key)[0], "/")
			if strings.HasPrefix(name, "Benchmark") && !declares(t, folder, name) {
				t.Errorf("%s: %s has no %s", p.name, p.pkg, name)
			}
		}
	}
}

func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, []byte("func "+name+"("))
	})
}

func worktrees(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "worktree", "list", "--porcelain").Output()
	if err != nil {
		t.Skipf("needs git and its history: %v", err)
	}
	found := regexp.MustCompile(`(?m)^worktree .*quotabench-instrument.*$`).FindAllString(string(out), -1)
	return strings.Join(found, "\n")
}

// TestAgainstHead runs the program: a small benchmark of the last commit next to
// this tree, and a package that neither has.
func TestAgainstHead(t *testing.T) {
	testenv.Long(t)
	before := worktrees(t)
	var out, errs strings.Builder
	code := run(t.Context(), []probe{
		bench("memo", "quota", "^BenchmarkMemo$", "10x", metric{what: "memo", key: "BenchmarkMemo/plain ns/op", unit: "ns"}),
		bench("none", "no/such/package", ".", "1x", metric{what: "nothing", key: "x", unit: "x"}),
		bench("broken", "quota", "(", "1x", metric{what: "broken", key: "x", unit: "x"}),
	}, []string{"-base", "HEAD", "-pairs", "2", "-only", "memo|none"}, &out, &errs)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{`[0-9a-f]{7}, com-`, `memo ns [0-9.,]+ [0-9.,]+ [0-9.]+ \[[0-9.]+, [0-9.]+\] less - (` + faster + "|" + slower + "|" + notApart + `)`, `nothing x - - - less - missing: [0-9a-f]{7} and here`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "broken") {
		t.Errorf("a probe that was not asked for is in\n%s", out.String())
	}
	if after := worktrees(t); after != before {
		t.Errorf("a worktree is left: %s", after)
	}
}

// TestSameModules gives an earlier commit this tree's version of a module.
func TestSameModules(t *testing.T) {
	testenv.Long(t)
	here := t.TempDir()
	base := t.TempDir()
	const mod = "module example.com/m\n\ngo 1.26\n\nrequire (\n\tgolang.org/x/sync %s\n)\n"
	for folder, version := range map[string]string{here: "v0.24.0", base: "v0.21.0"} {
		for name, text := range map[string]string{
			"go.mod": fmt.Sprintf(mod, version), "m.go": "package m\n\nimport _ \"golang.org/x/sync/errgroup\"\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	tool := &tool{here: &side{root: here}, base: &side{root: base}}
	changed, err := tool.sameModules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (module{Path: "golang.org/x/sync", Version: "v0.21.0"}); len(changed) != 1 || changed[0] != want {
		t.Errorf("changed %+v, want %+v", changed, want)
	}
	now, err := requirements(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if want := (module{Path: "golang.org/x/sync", Version: "v0.24.0"}); !slices.Contains(now, want) {
		t.Errorf("the earlier commit requires %+v", now)
	}
}

// TestInterrupted ends while a probe runs.
func TestInterrupted(t *testing.T) {
	testenv.Long(t)
	before := worktrees(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := probe{name: "endless", pkg: "no/such/package",
		open: both(func(ctx context.Context, t *tool, s *side) (sample, error) {
			cancel()
			_, err := execute(ctx, t.dir, "sleep", "600")
			return nil, err
		})}
	var out, errs strings.Builder
	if code := run(ctx, []probe{p}, []string{"-base", "HEAD"}, &out, &errs); code != program.Interrupted ||
		!strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if after := worktrees(t); after != before {
		t.Errorf("a worktree is left: %s", after)
	}
}

func TestUsage(t *testing.T) {
	worktrees(t)
	all := []probe{{name: "memo", pkg: "quota", open: both(nil)}}
	for want, args := range map[string][]string{
		"there is no commit 0000000": {"-base", "0000000"},
		"no probe has such a name":   {"-only", "x"},
		"at least one pair":          {"-pairs", "0"},
	} {
		var out, errs strings.Builder
		code := run(t.Context(), all, args, &out, &errs)
		if code != program.Usage || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: exit %d: %s", args, code, errs.String())
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(exec.Command("go").Path, filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	var out, errs strings.Builder
	if code := run(t.Context(), all, nil, &out, &errs); code != program.Usage ||
		!strings.Contains(errs.String(), "git is not installed") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
