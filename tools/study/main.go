// Command study repeats the study behind the rule for timings: how often compare fails
// unchanged code, and how often it finds a slowdown by 10 %, on series of measurements of
// real machines, or without one on a generated machine. It prints a table in Markdown.
//
//	go run -C tools ./study [-n 2000] [-into ../results/baseline/noise.md] [series.csv...]
//
// A series is a CSV file with the columns value (operations per second), starttime and
// VM_id. Series of machines that were measured at least 40 times are taken machine by
// machine; others, of one measurement per machine, as one.
package main

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	n := flag.Int("n", 2000, "comparisons per scenario")
	into := flag.String("into", "", "replace the table of this file, instead of printing it")
	flag.Parse()
	table, err := tables(*n, flag.Args())
	switch {
	case err != nil:
	case *into != "":
		err = replace(*into, table)
	default:
		fmt.Print(table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "study: "+err.Error())
		os.Exit(1)
	}
}

// The table of a file lies between these lines.
const (
	begins = "<!-- the study's table begins -->\n"
	ends   = "<!-- the study's table ends -->\n"
)

func replace(path, table string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(data), begins)
	_, tail, ok2 := strings.Cut(rest, ends)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table", path)
	}
	return os.WriteFile(path, []byte(head+begins+"\n"+table+"\n"+ends+tail), 0o644)
}

// tables studies each series, or without one a generated machine.
func tables(n int, paths []string) (string, error) {
	var out strings.Builder
	out.WriteString("| rounds from | measured as | comparisons | unchanged: fails | unchanged: inconclusive | 10 % " +
		"slower: fails | 10 % slower: passes |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, path := range paths {
		long, short, err := read(path)
		if err != nil {
			return "", err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".csv")
		if len(long) > 0 {
			source := recorded(fmt.Sprintf("%s, %d machines", name, len(long)), long)
			if err := rows(&out, source.name, scenarios(source), n); err != nil {
				return "", err
			}
		}
		if len(short) >= 2*rounds {
			source := recorded(name+", a machine per run", [][]float64{short})
			if err := rows(&out, source.name, scenarios(source)[:1], n); err != nil {
				return "", err
			}
		}
	}
	if len(paths) > 0 {
		return out.String(), nil
	}
	s := generated()
	if err := rows(&out, s.name, scenarios(s), n); err != nil {
		return "", err
	}
	for _, busy := range []bool{false, true} {
		source := disturbed(busy)
		if err := rows(&out, source.name, against(source), n); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func rows(out *strings.Builder, from string, all []scenario, n int) error {
	for _, scenario := range all {
		rates, err := study(scenario, n/max(1, scenario.gates/4))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %s | %d | %.2f %% | %.1f %% | %.1f %% | %.2f %% |\n", from, scenario.name, rates.Comparisons,
			rates.FalseAlarms, rates.Inconclusive, rates.Detected, rates.Missed)
		from = "" // once for all its rows
	}
	return nil
}

// measurement is a row of a series.
type measurement struct {
	start string
	value float64
}

// read returns the series of each machine that was measured often, in the order of time,
// and that of all others together.
func read(path string) (long [][]float64, short []float64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	table, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(table) == 0 {
		return nil, nil, fmt.Errorf("%s is empty", path)
	}
	value := slices.Index(table[0], "value")
	start := slices.Index(table[0], "starttime")
	machine := slices.Index(table[0], "VM_id")
	if value < 0 || start < 0 || machine < 0 {
		return nil, nil, fmt.Errorf("%s has no columns value, starttime and VM_id", path)
	}
	by := map[string][]measurement{}
	order := []string{}
	for _, row := range table[1:] {
		v, err := strconv.ParseFloat(row[value], 64)
		if err != nil || v <= 0 {
			continue // the run failed
		}
		if by[row[machine]] == nil {
			order = append(order, row[machine])
		}
		by[row[machine]] = append(by[row[machine]], measurement{row[start], v})
	}
	var rest []measurement
	for _, text := range order {
		if len(by[text]) >= 4*rounds {
			long = append(long, inOrder(by[text]))
		} else {
			rest = append(rest, by[text]...)
		}
	}
	return long, inOrder(rest), nil
}

func inOrder(all []measurement) (out []float64) {
	slices.SortStableFunc(all, func(a, b measurement) int { return strings.Compare(a.start, b.start) })
	for _, measurement := range all {
		out = append(out, measurement.value)
	}
	return out
}
