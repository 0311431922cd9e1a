package export

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
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

// GoBench renders runs in Go's benchmark format, a line per strategy and round, with the names and units of go test
// -bench, so that benchstat compares the two. What runs of a file differ in, other than strategy and workload, and a
// loop that is open, become further keys, by the names of parameters in a results file. Rounds that are not behind the
// timings of reports have none here, and rounds whose correctness figures do not count are left out with a comment.
// Stores are named as the benchmark names them, since figures on different ones are not compared.
func GoBench(file *results.File) []byte {
	var buffer bytes.Buffer
	host := &file.Provenance.Host
	for _, x := range [][2]string{{"goos", host.OS}, {"goarch", host.Arch}, {"pkg", "github.com/quotabench/quotabench"},
		{"cpu", host.Model}} {
		if x[1] != "" {
			fmt.Fprintf(&buffer, "%s: %s\n", x[0], format.Plain(x[1]))
		}
	}
	for _, name := range file.StoreNames() {
		store := file.Stores[name]
		fmt.Fprintf(&buffer, "%s: %s\n", name,
			format.Plain(format.Join("; ", format.Join(" ", store.Kind, store.Version), store.Durability, store.Detail)))
	}
	buffer.WriteString(Units)
	groups := grouped(file)
	keys := further(groups)
	for _, group := range groups {
		counts := group.timed()
		for _, run := range group.runs {
			if !run.Audit.Valid {
				fmt.Fprintf(&buffer, "# left out: %s\n", format.Plain(run.Err().Error()))
				continue
			}
			metrics := Correctness(run)
			if slices.Contains(counts, run) {
				metrics = append(clocked(run), metrics...)
			}
			fmt.Fprintf(&buffer, "Benchmark%s\t%d", benchName(file, run, keys), run.Issued)
			for _, metric := range metrics {
				fmt.Fprintf(&buffer, "\t%s %s", strconv.FormatFloat(metric.Value, 'g', -1, 64), metric.Unit)
			}
			buffer.WriteString("\n")
		}
	}
	return buffer.Bytes()
}

// further are the parameters in which runs of the same name and loop differ, and the loop if one is open.
func further(groups []group) (keys []string) {
	first := map[string]map[string]string{}
	for _, group := range groups {
		run := group.runs[0]
		given := parameters(run)
		if given["loop"] != "" {
			keys = append(keys, "loop")
		}
		// The open loop next to a closed one differs from it by what makes it open.
		name := SubName(run.Params.Label, run.Workload) + "/" + run.Params.Loop
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

// parameters are what tells runs of a strategy under a workload apart, by the names in a results file, except that
// those of the workload are "parameters". A closed loop is empty, as is what has no value.
func parameters(run *results.Run) map[string]string {
	params := run.Params.Compared()
	given := format.List(slices.Sorted(maps.Keys(params.Workload)), ",", func(k string) string {
		return k + "=" + params.Workload[k]
	})
	out := map[string]string{"policy": run.Policy, "parameters": given}
	params.Workload = nil
	params.Point = nil // the latter repeats others
	all := reflect.ValueOf(params)
	for _, field := range reflect.VisibleFields(all.Type()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // it is embedded, and its fields follow
			continue
		}
		value := all.FieldByIndex(field.Index).Interface()
		if list, ok := value.([]string); ok {
			value = strings.Join(list, ",")
		}
		if all.FieldByIndex(field.Index).IsZero() || value == codes.ClosedLoop {
			value = ""
		}
		out[name] = fmt.Sprint(value)
	}
	return out
}

// benchName is the name after "Benchmark", as the testing package writes it.
func benchName(file *results.File, run *results.Run, keys []string) string {
	name := Benchmark + "/" + SubName(run.Params.Label, run.Workload)
	if file.Kind == results.Simulated {
		name += "/kind=" + results.Simulated
	}
	given := parameters(run)
	for _, key := range keys {
		if text := given[key]; text != "" {
			name += "/" + key + "=" + strings.ReplaceAll(text, "/", "_")
		}
	}
	// The testing package names the processors of the process, wherever a run is placed.
	if procs := file.Provenance.Host.CPUs; procs > 1 {
		name += "-" + strconv.Itoa(procs)
	}
	return rewritten(name)
}

// rewritten has no space and nothing that cannot be printed, as in testing.
func rewritten(name string) string {
	var builder strings.Builder
	for _, r := range name {
		switch {
		case r == ' ' || r == '\u00a0':
			builder.WriteByte('_')
		case !strconv.IsPrint(r):
			text := strconv.QuoteRune(r)
			builder.WriteString(text[1 : len(text)-1])
		default:
			builder.WriteRune(r)
		}
	}
	return builder.String()
}
