package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// catalogues are what list can show, in the order of the help text.
var catalogues = []struct {
	name string
	list func() []entry
}{
	{"strategies", listStrategies},
	{"workloads", listWorkloads},
	{"policies", listPolicies},
	{"stores", listStores},
}

// entry is one line of a catalogue. Fields are also the JSON form.
type entry struct {
	Name    string   `json:"name"`
	Doc     string   `json:"doc"`
	Columns []string `json:"-"`
	// More is what the JSON form adds.
	More map[string]any `json:"details,omitempty"`
}

func listCommand() *cobra.Command {
	var asJSON bool
	names := make([]string, len(catalogues))
	for i, c := range catalogues {
		names[i] = c.name
	}
	cmd := &cobra.Command{
		Use:       "list [" + strings.Join(names, "|") + "]",
		Short:     "List strategies, workloads, policies and stores",
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("list takes one catalogue: %s", strings.Join(names, ", "))
			}
			if len(args) == 1 && !slices.Contains(names, args[0]) {
				return usagef("nothing called %q to list: one of %s", args[0], strings.Join(names, ", "))
			}
			out := cmd.OutOrStdout()
			all := map[string][]entry{}
			for _, c := range catalogues {
				if len(args) == 0 || args[0] == c.name {
					all[c.name] = c.list()
				}
			}
			if asJSON {
				enc := json.NewEncoder(out)
				enc.SetIndent("", "  ")
				if len(args) == 1 {
					return enc.Encode(all[args[0]])
				}
				return enc.Encode(all)
			}
			first := true
			for _, c := range catalogues {
				if entries, ok := all[c.name]; ok {
					if !first {
						fmt.Fprintln(out)
					}
					first = false
					if err := writeEntries(out, c.name, entries); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeEntries(out io.Writer, title string, entries []entry) error {
	fmt.Fprintln(out, strings.ToUpper(title))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		fmt.Fprintln(w, "  "+strings.Join(append([]string{e.Name}, append(e.Columns, e.Doc)...), "\t"))
	}
	return w.Flush()
}

func listStrategies() []entry {
	var out []entry
	for _, m := range strategies.All() {
		needs := make([]string, len(m.Needs))
		for i, n := range m.Needs {
			needs[i] = string(n)
		}
		clauses := []map[string]any{}
		for _, c := range m.Guarantee {
			clauses = append(clauses, map[string]any{"property": c.Property, "at_most": c.Formula, "windows": c.Kinds, "tolerates": c.Tolerates})
		}
		options := []map[string]any{}
		for _, o := range m.Options {
			options = append(options, map[string]any{"name": o.Name, "doc": o.Doc, "default": o.Default, "values": o.Values, "type": o.Type})
		}
		out = append(out, entry{
			Name: m.Name, Doc: m.Doc,
			Columns: []string{string(m.Form), orDash(m.Source), orDash(strings.Join(needs, "+"))},
			More: map[string]any{
				"form": m.Form, "source": m.Source, "needs": needs, "windows": m.Kinds, "counts": m.Counts,
				"reset": m.Reset, "options": options, "guarantee": clauses, "excluded_modes": m.Excluded,
			},
		})
	}
	return out
}

func listWorkloads() []entry {
	var out []entry
	for _, m := range workloads.All() {
		out = append(out, entry{Name: m.Name, Doc: m.Doc, Columns: []string{string(m.Loop) + " loop"}, More: map[string]any{"loop": m.Loop}})
	}
	return out
}

func listPolicies() []entry {
	var out []entry
	for _, p := range quota.Policies() {
		serving := []string{}
		for _, m := range strategies.All() {
			if m.ServesPolicy(&p) == nil {
				serving = append(serving, m.Name)
			}
		}
		out = append(out, entry{
			Name: p.Name, Doc: p.Doc, Columns: []string{p.String(), "record " + p.Source},
			More: map[string]any{"limit": p.Limit, "unit": p.Unit, "window": p.Window.Kind, "length_ns": p.Window.Length, "record": p.Source, "costs": p.Costs, "served_by": serving},
		})
	}
	return out
}

// storeChoices are the values of --redis and --postgres.
var storeChoices = []struct{ name, flags, doc string }{
	{"auto", "--redis, --postgres", "a process if its server is installed, else embedded; the default"},
	{"process", "--redis, --postgres", "redis-server or postgres of this machine, started as a child and removed afterwards"},
	{"embedded", "--redis", "miniredis inside this process: no server, and timings that say nothing about one"},
	{"embedded", "--postgres", "no server: tiered strategies use an in-process model, SQL strategies are skipped"},
	{"redis://", "--redis", "a server of yours by URL, also rediss:// and unix://; only keys under the run's prefix are touched"},
	{"postgres://", "--postgres", "a server of yours by URL; only a schema of the run's own is touched"},
}

func listStores() []entry {
	var out []entry
	for _, c := range storeChoices {
		out = append(out, entry{Name: c.name, Doc: c.doc, Columns: []string{c.flags}, More: map[string]any{"flags": c.flags}})
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
