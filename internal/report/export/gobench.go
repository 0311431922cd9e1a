package export

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
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
// keys, by the names of parameters in a results file. Rounds that are not behind the timings of reports have none here, and rounds whose
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
				metrics = append(clocked(r), metrics...)
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

// further are the parameters in which runs of the same name and loop differ, and the loop if one is open.
func further(groups []group) (keys []string) {
	first := map[string]map[string]string{}
	for _, g := range groups {
		r := g.runs[0]
		given := parameters(r)
		if given["loop"] != "" {
			keys = append(keys, "loop")
		}
		// The open loop next to a closed one differs from it by what makes it open.
		name := SubName(r.Params.Label, r.Workload) + "/" + r.Params.Loop
		if first[name] == nil {
			first[name] = given
		}
		for key, value := range given {
			if first[name][key] != value {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// parameters are what tells runs of a strategy under a workload apart, by the names in a results file, except that those of the
// workload are "parameters". A closed loop is empty, as is what has no value.
func parameters(r *results.Run) map[string]string {
	p := r.Params.Compared()
	given := format.List(slices.Sorted(maps.Keys(p.Workload)), ",", func(k string) string { return k + "=" + p.Workload[k] })
	out := map[string]string{"policy": r.Policy, "parameters": given}
	p.Workload = nil
	p.Point = nil // the latter repeats others
	all := reflect.ValueOf(p)
	for i := range all.NumField() {
		name, _, _ := strings.Cut(all.Type().Field(i).Tag.Get("json"), ",")
		value := all.Field(i).Interface()
		if list, ok := value.([]string); ok {
			value = strings.Join(list, ",")
		}
		if all.Field(i).IsZero() || value == results.ClosedLoop {
			value = ""
		}
		out[name] = fmt.Sprint(value)
	}
	return out
}

// benchName is the name after "Benchmark", as the testing package writes it.
func benchName(f *results.File, r *results.Run, keys []string) string {
	name := Benchmark + "/" + SubName(r.Params.Label, r.Workload)
	if f.Kind == results.Simulated {
		name += "/kind=" + results.Simulated
	}
	given := parameters(r)
	for _, key := range keys {
		if v := given[key]; v != "" {
			name += "/" + key + "=" + strings.ReplaceAll(v, "/", "_")
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
