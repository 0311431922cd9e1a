package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/claims"
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
	{"presets", listPresets},
	{"claims", listClaims},
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
	var buffer bytes.Buffer
	for _, c := range catalogues {
		if len(names) > 0 && c.name != names[0] {
			continue
		}
		writeEntries(&buffer, page, c.name, c.list())
		if c.name == "strategies" {
			writeOptions(&buffer, page)
			writeDeviations(&buffer, page)
			writeElsewhere(&buffer, page)
		}
	}
	_, err := out.Write(buffer.Bytes())
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
	for _, entry := range entries {
		for i, cell := range append([]string{entry.Name}, entry.Columns...) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := layout.TextWidth(cell); w <= widestCell {
				widths[i] = max(widths[i], w)
			}
		}
	}
	for _, entry := range entries {
		head := "  "
		for i, cell := range append([]string{entry.Name}, entry.Columns...) {
			head += layout.Pad(cell, widths[i]) + "  "
		}
		if 2*layout.TextWidth(head) > page.Cells() {
			for _, text := range page.Paragraph("  ", strings.TrimSpace(head)) {
				fmt.Fprintln(out, text)
			}
			head = "      "
		}
		for _, text := range page.Paragraph(head, entry.Doc) {
			fmt.Fprintln(out, text)
		}
	}
}

// writeOptions lists the options of strategies as they are typed, e.g. "three-tier:filter=scalable|fixed".
func writeOptions(out *bytes.Buffer, page layout.Page) {
	var entries []entry
	for _, meta := range strategies.All() {
		for i := range meta.Options {
			entries = append(entries, optionEntry(meta.Name, &meta.Options[i]))
		}
	}
	writeEntries(out, page, "options of strategies", entries)
}

func optionEntry(strategy string, option *quota.Option) entry {
	values := strings.Join(option.Values, "|")
	if values == "" {
		values = "<" + cmp.Or(option.Type, "text") + ">"
	}
	byDefault := "no default"
	if option.Default != "" {
		byDefault = "default " + option.Default
	}
	return entry{Name: strategy + ":" + option.Name + "=" + values, Doc: option.Doc, Columns: []string{byDefault}}
}

// writeDeviations lists where strategies differ from their sources.
func writeDeviations(out *bytes.Buffer, page layout.Page) {
	var lines []entry
	for _, meta := range strategies.All() {
		for _, text := range meta.Notes.Deviations {
			lines = append(lines, entry{Name: meta.Name, Doc: text})
		}
	}
	writeEntries(out, page, "where strategies differ from their sources", lines)
}

// writeElsewhere lists the strategies that this program cannot run, with how to get
// one that can.
func writeElsewhere(out *bytes.Buffer, page layout.Page) {
	var lines []entry
	for _, meta := range strategies.All() {
		if meta.BuiltIn() != nil {
			lines = append(lines, entry{Name: meta.Name, Doc: meta.Elsewhere})
		}
	}
	writeEntries(out, page, "strategies that are not built into this program", lines)
}

func listStrategies() []entry {
	var out []entry
	for _, meta := range strategies.All() {
		needs := format.Strings(meta.Needs)
		modes := []strategies.Mode{}
		for _, mode := range strategies.Modes() {
			if _, not := meta.Excludes(mode); !not {
				modes = append(modes, mode)
			}
		}
		out = append(out, entry{
			Name: meta.Name, Doc: meta.Doc,
			Columns: []string{string(meta.Form), cmp.Or(meta.Source, "-"), cmp.Or(strings.Join(needs, "+"), "-")},
			More: map[string]any{
				"form": meta.Form, "source": meta.Source, "needs": needs, "windows": meta.Kinds, "counts": meta.Counts,
				"reset": meta.Reset, "options": listOptions(meta.Options), "modes": modes, "excluded_modes": meta.Excluded,
				"guarantee": listClauses(meta.Guarantee), "record_promises": listClauses(meta.Record),
				"how": orEmpty(meta.Notes.How), "deviations": orEmpty(meta.Notes.Deviations), "use": meta.Notes.Use,
				"avoid":    meta.Notes.Avoid,
				"built_in": meta.BuiltIn() == nil, "elsewhere": meta.Elsewhere,
			},
		})
	}
	return out
}

func listClauses(declared []quota.Clause) []map[string]any {
	clauses := []map[string]any{}
	for _, clause := range declared {
		clauses = append(clauses, map[string]any{
			"property": clause.Property, "at_most": clause.AtMost(), "windows": orEmpty(clause.Kinds),
			"tolerates": orEmpty(clause.Tolerates), "source": clause.Claimed(),
		})
	}
	return clauses
}

func listOptions(declared []quota.Option) []map[string]any {
	options := []map[string]any{}
	for _, option := range declared {
		options = append(options, map[string]any{
			"name":    option.Name,
			"doc":     strings.ReplaceAll(option.Doc, "`", ""),
			"default": option.Default,
			"values":  orEmpty(option.Values),
			"type":    option.Type,
		})
	}
	return options
}

func listWorkloads() []entry {
	var out []entry
	for _, meta := range workloads.All() {
		out = append(out, entry{Name: meta.Name, Doc: meta.Doc, Columns: []string{string(meta.Loop) + " loop"},
			More: map[string]any{"loop": meta.Loop, "options": listOptions(meta.Options)}})
	}
	return out
}

func listPolicies() []entry {
	var out []entry
	for _, policy := range quota.Policies() {
		serving := []string{}
		for _, meta := range strategies.All() {
			if meta.ServesPolicy(&policy) == nil {
				serving = append(serving, meta.Name)
			}
		}
		out = append(out, entry{
			Name: policy.Name, Doc: policy.Doc,
			Columns: []string{group.PolicyText(&policy), cmp.Or(policy.Source, "registered")},
			More: map[string]any{"limit": policy.Limit, "unit": policy.Unit, "window": policy.Window.Kind,
				"length_ns": policy.Window.Length, "record": policy.Source,
				"costs": orEmpty(policy.Costs), "served_by": serving},
		})
	}
	return out
}

func listFormats() []entry {
	var out []entry
	for _, renderer := range slices.Concat(render.Renderers(), render.Exports()) {
		out = append(out, entry{Name: renderer.Name, Doc: renderer.Doc, Columns: []string{renderer.Ext},
			More: map[string]any{"extension": renderer.Ext}})
	}
	return out
}

func listStores() []entry {
	var out []entry
	for _, driver := range stores.Drivers() {
		for _, choice := range driver.Choices {
			out = append(out, entry{Name: choice.Word, Doc: choice.Doc, Columns: []string{driver.Asked("")},
				More: map[string]any{"flags": []string{driver.Asked("")}, "store": driver.Name}})
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

// listPresets are the simulations that design records describe.
func listPresets() (out []entry) {
	for _, preset := range sim.Presets() {
		out = append(out, entry{Name: preset.Name, Doc: preset.Doc})
	}
	return out
}

// listClaims are those of the design records, by the names that claims --id takes.
func listClaims() (out []entry) {
	files, err := claims.Builtin(explore.Properties())
	if err != nil {
		panic(err) // the files are part of the program
	}
	for _, file := range files {
		for i := range file.Claims {
			claim := &file.Claims[i]
			out = append(out, entry{Name: claim.ID, Columns: []string{file.Record}, Doc: claim.Says})
		}
	}
	return out
}
