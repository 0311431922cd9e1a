package export

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Benchmark is the name of the benchmark that measures registered strategies, without
// what the testing package puts before it.
const Benchmark = "Strategies"

// SubName is how that benchmark names a strategy under a workload.
func SubName(label, workload string) string {
	return "strategy=" + label + "/workload=" + workload
}

// GoBench renders runs in Go's benchmark format, a line per strategy and round, with
// the names and units of go test -bench, so that benchstat compares the two. What runs
// of a file differ in, other than strategy and workload, and a loop that is open, become further
// keys. Rounds that are not behind the timings of reports have none here, and rounds whose
// correctness figures do not count are left out with a comment. Stores are named as the benchmark
// names them, since figures on different ones are not compared.
func GoBench(f *results.File) []byte {
	var b bytes.Buffer
	host := &f.Provenance.Host
	for _, x := range [][2]string{{"goos", host.OS}, {"goarch", host.Arch}, {"pkg", "github.com/quotabench/quotabench"}, {"cpu", host.Model}} {
		if x[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", x[0], format.Plain(x[1]))
		}
	}
	for _, name := range f.StoreNames() {
		s := f.Stores[name]
		fmt.Fprintf(&b, "%s: %s\n", name, format.Plain(format.Join("; ", format.Join(" ", s.Kind, s.Version), s.Durability, s.Detail)))
	}
	b.WriteString(Units)
	groups := grouped(f)
	keys := further(groups)
	for _, g := range groups {
		counts := g.timed()
		for _, r := range g.runs {
			if !r.Audit.Valid {
				fmt.Fprintf(&b, "# left out: %s\n", format.Plain(r.Err().Error()))
				continue
			}
			metrics := Correctness(r)
			if slices.Contains(counts, r) {
				metrics = append(clocked(r, g.of.ResponseCounts), metrics...)
			}
			fmt.Fprintf(&b, "Benchmark%s\t%d", benchName(f, r, keys), r.Issued)
			for _, m := range metrics {
				fmt.Fprintf(&b, "\t%s %s", strconv.FormatFloat(m.Value, 'g', -1, 64), m.Unit)
			}
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}

// benchKey is a parameter that may tell runs apart.
type benchKey struct {
	name string
	of   func(r *results.Run) string
	// plain is the value that needs no key.
	plain string
}

var benchKeys = []benchKey{
	{name: "loop", of: func(r *results.Run) string { return r.Params.Loop }, plain: results.ClosedLoop},
	{name: "policy", of: func(r *results.Run) string { return r.Policy }},
	{name: "limit", of: func(r *results.Run) string { return strconv.FormatInt(r.Params.Limit, 10) }},
	{name: "window", of: func(r *results.Run) string { return r.Params.Window }},
	{name: "rate", of: func(r *results.Run) string { return strconv.FormatFloat(r.Params.RatePerS, 'g', -1, 64) }, plain: "0"},
	{name: "workers", of: func(r *results.Run) string { return strconv.Itoa(r.Params.Workers) }},
	{name: "instances", of: func(r *results.Run) string { return strconv.Itoa(r.Params.Instances) }},
	{name: "pool", of: func(r *results.Run) string { return strconv.Itoa(r.Params.Pool) }},
	{name: "cold", of: func(r *results.Run) string { return strconv.FormatBool(r.Params.Cold) }},
	{name: "retries", of: func(r *results.Run) string { return strconv.Itoa(r.Params.Retries) }},
	{name: "speed", of: func(r *results.Run) string { return strconv.FormatFloat(r.Params.Speed, 'g', -1, 64) }},
	{name: "outages", of: func(r *results.Run) string { return strings.Join(r.Params.Outages, ",") }},
	{name: "skew", of: func(r *results.Run) string { return strings.Join(r.Params.Skew, ",") }},
	{name: "network", of: func(r *results.Run) string { return strings.Join(r.Params.Network, ",") }},
	{name: "changes", of: func(r *results.Run) string { return strings.Join(r.Params.LimitChanges, ",") }},
	{name: "parameters", of: func(r *results.Run) string { return fmt.Sprint(r.Params.Workload) }},
}

// further are the keys in which runs of the same name differ, and those whose value
// is not the plain one. Rates of open loops alone are not told: each has one.
func further(groups []group) (out []benchKey) {
	for _, k := range benchKeys {
		seen := map[string]map[string]bool{}
		differs := false
		for _, g := range groups {
			r := g.runs[0]
			// The open loop next to a closed one differs from it by what makes it open.
			name := SubName(r.Params.Label, r.Workload)
			if k.name != "loop" {
				name += "/" + r.Params.Loop
			}
			if seen[name] == nil {
				seen[name] = map[string]bool{}
			}
			seen[name][k.of(r)] = true
			differs = differs || len(seen[name]) > 1 || k.name == "loop" && k.of(r) != k.plain
		}
		if differs {
			out = append(out, k)
		}
	}
	return out
}

// benchName is the name after "Benchmark", as the testing package writes it.
func benchName(f *results.File, r *results.Run, keys []benchKey) string {
	name := Benchmark + "/" + SubName(r.Params.Label, r.Workload)
	if f.Kind == results.Simulated {
		name += "/kind=" + results.Simulated
	}
	for _, k := range keys {
		if v := k.of(r); v != k.plain {
			name += "/" + k.name + "=" + strings.ReplaceAll(v, "/", "_")
		}
	}
	// The testing package names the processors of the process, wherever a run is placed.
	if procs := f.Provenance.Host.CPUs; procs > 1 {
		name += "-" + strconv.Itoa(procs)
	}
	return rewritten(name)
}

// rewritten has no space and nothing that cannot be printed, as in testing.
func rewritten(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == ' ' || r == '\u00a0':
			b.WriteByte('_')
		case !strconv.IsPrint(r):
			s := strconv.QuoteRune(r)
			b.WriteString(s[1 : len(s)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
