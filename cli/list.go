package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results/render"
	"github.com/quotabench/quotabench/stores"
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
	{"formats", listFormats},
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
	cmd := described("list", &cobra.Command{
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, settings.NoFiles
			}
			return names, settings.NoFiles
		},
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usagef("list takes one catalogue: %s", strings.Join(names, ", "))
			case len(args) == 1 && !slices.Contains(names, args[0]):
				return usagef("%w", quota.Unknown("catalogue", args[0], names, ""))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), args)
			}
			page, out := terminal.Page(cmd)
			return writeText(out, page, args)
		},
	})
	settings.New(cmd, []settings.Setting{jsonFlag(&asJSON, "write JSON")})
	return cmd
}

// writeJSON writes the one catalogue that is named, or all of them by name.
func writeJSON(out io.Writer, names []string) error {
	all := map[string][]entry{}
	for _, c := range catalogues {
		if len(names) == 1 && c.name == names[0] {
			return encodeJSON(out, c.list())
		}
		all[c.name] = c.list()
	}
	return encodeJSON(out, all)
}

func writeText(out io.Writer, page layout.Page, names []string) error {
	var b bytes.Buffer
	for _, c := range catalogues {
		if len(names) > 0 && c.name != names[0] {
			continue
		}
		writeEntries(&b, page, c.name, c.list())
		if c.name == "strategies" {
			writeOptions(&b, page)
			writeDeviations(&b, page)
			writeElsewhere(&b, page)
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

// widestCell is how far a column is widened for a cell, in cells.
const widestCell = 26

// writeEntries writes a title and a line for each entry, if there is one, in columns, with what is said of it behind
// them, or below if they take too much room.
func writeEntries(out *bytes.Buffer, page layout.Page, title string, entries []entry) {
	if len(entries) == 0 {
		return
	}
	if out.Len() > 0 {
		out.WriteByte('\n')
	}
	fmt.Fprintln(out, page.Paint(layout.Strong, strings.ToUpper(title)))
	var widths []int
	for _, e := range entries {
		for i, cell := range append([]string{e.Name}, e.Columns...) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := layout.TextWidth(cell); w <= widestCell {
				widths[i] = max(widths[i], w)
			}
		}
	}
	for _, e := range entries {
		head := "  "
		for i, cell := range append([]string{e.Name}, e.Columns...) {
			head += layout.Pad(cell, widths[i]) + "  "
		}
		if 2*layout.TextWidth(head) > page.Cells() {
			for _, l := range page.Paragraph("  ", strings.TrimSpace(head)) {
				fmt.Fprintln(out, l)
			}
			head = "      "
		}
		for _, l := range page.Paragraph(head, e.Doc) {
			fmt.Fprintln(out, l)
		}
	}
}

// writeOptions lists the options of strategies, as they are typed.
func writeOptions(out *bytes.Buffer, page layout.Page) {
	var lines []entry
	for _, m := range strategies.All() {
		for _, o := range m.Options {
			values := cmp.Or(strings.Join(o.Values, "|"), "<"+cmp.Or(o.Type, "text")+">")
			lines = append(lines, entry{Name: m.Name + ":" + o.Name + "=" + values, Doc: o.Doc,
				Columns: []string{map[bool]string{true: "no default", false: "default " + o.Default}[o.Default == ""]}})
		}
	}
	writeEntries(out, page, "options of strategies", lines)
}

// writeDeviations lists where strategies differ from their sources.
func writeDeviations(out *bytes.Buffer, page layout.Page) {
	var lines []entry
	for _, m := range strategies.All() {
		for _, d := range m.Notes.Deviations {
			lines = append(lines, entry{Name: m.Name, Doc: d})
		}
	}
	writeEntries(out, page, "where strategies differ from their sources", lines)
}

// writeElsewhere lists the strategies that this program cannot run, with how to get
// one that can.
func writeElsewhere(out *bytes.Buffer, page layout.Page) {
	var lines []entry
	for _, m := range strategies.All() {
		if m.BuiltIn() != nil {
			lines = append(lines, entry{Name: m.Name, Doc: m.Elsewhere})
		}
	}
	writeEntries(out, page, "strategies that are not built into this program", lines)
}

func listStrategies() []entry {
	var out []entry
	for _, m := range strategies.All() {
		needs := format.Strings(m.Needs)
		modes := []strategies.Mode{}
		for _, mode := range strategies.Modes() {
			if _, not := m.Excludes(mode); !not {
				modes = append(modes, mode)
			}
		}
		out = append(out, entry{
			Name: m.Name, Doc: m.Doc,
			Columns: []string{string(m.Form), cmp.Or(m.Source, "-"), cmp.Or(strings.Join(needs, "+"), "-")},
			More: map[string]any{
				"form": m.Form, "source": m.Source, "needs": needs, "windows": m.Kinds, "counts": m.Counts,
				"reset": m.Reset, "options": listOptions(m.Options), "modes": modes, "excluded_modes": m.Excluded,
				"guarantee": listClauses(m.Guarantee), "record_promises": listClauses(m.Record),
				"how": orEmpty(m.Notes.How), "deviations": orEmpty(m.Notes.Deviations), "use": m.Notes.Use, "avoid": m.Notes.Avoid,
				"built_in": m.BuiltIn() == nil, "elsewhere": m.Elsewhere,
			},
		})
	}
	return out
}

func listClauses(declared []quota.Clause) []map[string]any {
	clauses := []map[string]any{}
	for _, c := range declared {
		clauses = append(clauses, map[string]any{
			"property": c.Property, "at_most": c.Formula, "windows": orEmpty(c.Kinds), "tolerates": orEmpty(c.Tolerates), "source": c.Source,
		})
	}
	return clauses
}

func listOptions(declared []quota.Option) []map[string]any {
	options := []map[string]any{}
	for _, o := range declared {
		options = append(options, map[string]any{
			"name": o.Name, "doc": strings.ReplaceAll(o.Doc, "`", ""), "default": o.Default, "values": orEmpty(o.Values), "type": o.Type,
		})
	}
	return options
}

func listWorkloads() []entry {
	var out []entry
	for _, m := range workloads.All() {
		out = append(out, entry{Name: m.Name, Doc: m.Doc, Columns: []string{string(m.Loop) + " loop"},
			More: map[string]any{"loop": m.Loop, "options": listOptions(m.Options)}})
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
			Name: p.Name, Doc: p.Doc, Columns: []string{group.PolicyText(&p), cmp.Or(p.Source, "registered")},
			More: map[string]any{"limit": p.Limit, "unit": p.Unit, "window": p.Window.Kind, "length_ns": p.Window.Length, "record": p.Source,
				"costs": orEmpty(p.Costs), "served_by": serving},
		})
	}
	return out
}

func listFormats() []entry {
	var out []entry
	for _, r := range slices.Concat(render.Renderers(), render.Exports()) {
		out = append(out, entry{Name: r.Name, Doc: r.Doc, Columns: []string{r.Ext}, More: map[string]any{"extension": r.Ext}})
	}
	return out
}

func listStores() []entry {
	var out []entry
	for _, d := range stores.Drivers() {
		for _, c := range d.Choices {
			out = append(out, entry{Name: c.Word, Doc: c.Doc, Columns: []string{d.Asked("")},
				More: map[string]any{"flags": []string{d.Asked("")}, "store": d.Name}})
		}
	}
	return out
}

// orEmpty makes a list that JSON shows as empty and not as null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
