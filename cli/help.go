package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/workloads"
)

// helpWidth is the greatest width of a help text, in cells.
const helpWidth = 100

// commandGroups are the commands by what they are for, in the order of the help text.
var commandGroups = []struct {
	id, title string
	commands  []string
}{
	{"run", "Try strategies out", []string{"choose", "run", "sweep", "sim", "explore"}},
	{"read", "Use what was recorded", []string{"report", "plot", "compare", "judge", "merge", "export"}},
	{"setup", "Find your way", []string{"list", "doctor", "clean", "version", "completion", "man", "help"}},
}

// groupCommands gives each command its group.
func groupCommands(root *cobra.Command) {
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}

// The groups of flags, in the order of the help text.
const (
	groupWhat     = "What to try"
	groupLoad     = "Load"
	groupWorkload = "The workload's own"
	groupTime     = "Virtual time"
	groupSearch   = "The search"
	groupTrouble  = "Clients and trouble"
	groupStores   = "Stores"
	groupGates    = "Gates and comparisons"
	groupOutput   = "Output"
	groupOther    = "Flags"
)

// flagGroups are the flags of each group but for those that stores and workloads declare.
var flagGroups = []struct {
	title string
	flags []string
}{
	{groupWhat, []string{"strategy", "policy", "workload", "limit", "preset", "instances", "regions", "leak", "p99", "uploads", "budget", "yes"}},
	{groupLoad, []string{"workers", "loop", "rate", "arrivals", "requests", "duration", "rounds", "budget", "quick", "seed", "shard", "param", "until"}},
	{groupWorkload, []string{"speed"}},
	{groupTime, []string{"start", "region", "shared-redis", "rush", "home", "every", "tracked"}},
	{groupSearch, []string{"clients", "script", "used", "faults", "times", "jobs", "asks", "property", "max-states", "max-memory", "preemptions", "full", "max-schedules", "timeout", "odds-rate", "first", "parallel", "replay"}},
	{groupTrouble, []string{"pool", "cold", "client", "client-retries", "cores", "outage", "change-limit", "skew", "life", "decision-timeout"}},
	{groupStores, []string{"on"}},
	{groupGates, []string{"fail-on", "exit-zero", "undecided", "max-bound", "against", "format", "tolerance", "timing", "strict", "gates"}},
	{groupOutput, []string{"out", "history", "metrics", "verbose", "json", "config", "print-config"}},
	{groupOther, []string{"help", colourFlag}},
}

// groupOf is the group of a flag.
func groupOf(name string) string {
	for _, g := range flagGroups {
		if slices.Contains(g.flags, name) {
			return g.title
		}
	}
	for _, d := range stores.Drivers() {
		if name == d.Name || name == d.Name+"-image" || name == "store" {
			return groupStores
		}
	}
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if o.Name == name {
				return groupWorkload
			}
		}
	}
	return groupOther
}

// fewFlags need no groups.
const fewFlags = 10

// showHelp writes all that there is to say of a command.
func showHelp(cmd *cobra.Command, _ []string) {
	page, out := pageOf(cmd)
	page.Width = min(page.Cells(), helpWidth)
	var b bytes.Buffer
	if text := strings.TrimSpace(cmd.Long); text != "" {
		for _, l := range reflowed(page, text) {
			fmt.Fprintln(&b, l)
		}
		fmt.Fprintln(&b)
	} else if cmd.Short != "" {
		fmt.Fprintln(&b, cmd.Short+"\n")
	}
	writeUsage(&b, page, cmd)
	_, _ = out.Write(b.Bytes()) // there is no one else to tell
}

// item is a line of a list: a word, and what is said of it in a column beside.
var item = regexp.MustCompile(`^(  \S+ {2,})(\S.*)$`)

// reflowed is a text with its paragraphs and the lists in it as wide as the page. Other
// indented lines stay.
func reflowed(page layout.Page, text string) (out []string) {
	var prose []string
	var head string // of an item
	flush := func() {
		switch {
		case head != "":
			out = append(out, page.Paragraph(head, strings.Join(prose, " "))...)
		case len(prose) > 0:
			out = append(out, page.Wrap(strings.Join(prose, " "))...)
		}
		head, prose = "", nil
	}
	for l := range strings.SplitSeq(text, "\n") {
		if m := item.FindStringSubmatch(l); m != nil {
			flush()
			head, prose = m[1], []string{m[2]}
			continue
		}
		if rest, ok := strings.CutPrefix(l, strings.Repeat(" ", len(head))); ok && head != "" && !strings.HasPrefix(rest, " ") {
			prose = append(prose, rest)
			continue
		}
		if head != "" {
			flush()
		}
		if l != "" && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "\t") {
			prose = append(prose, l)
			continue
		}
		flush()
		out = append(out, l)
	}
	flush()
	return out
}

// writeUsage writes how a command is called, with examples, commands and flags.
func writeUsage(b *bytes.Buffer, page layout.Page, cmd *cobra.Command) {
	head := func(title string) { fmt.Fprintln(b, page.Paint(layout.Strong, title+":")) }
	head("Usage")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		fmt.Fprintln(b, "  "+cmd.UseLine())
	} else {
		fmt.Fprintln(b, "  "+cmd.CommandPath()+" [command]")
	}
	if cmd.HasExample() {
		fmt.Fprintln(b)
		head("Examples")
		fmt.Fprintln(b, cmd.Example)
	}
	writeCommands(b, page, cmd)
	flags := cmd.LocalFlags() // also makes those that all commands have
	all := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all++
		}
	})
	for _, g := range flagGroups {
		set := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
		set.SortFlags = false
		take := func(f *pflag.Flag) {
			title := groupOf(f.Name)
			if all < fewFlags {
				title = groupOther
			}
			if title == g.title && set.Lookup(f.Name) == nil {
				set.AddFlag(f)
			}
		}
		flags.VisitAll(take)
		cmd.InheritedFlags().VisitAll(take)
		if set.HasAvailableFlags() {
			fmt.Fprintln(b)
			head(g.title)
			fmt.Fprint(b, set.FlagUsagesWrapped(page.Cells()))
		}
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\n\"%s COMMAND --help\" says more about a command.\n", cmd.CommandPath())
	}
}

// writeCommands lists the commands of a command by group, each in one line.
func writeCommands(b *bytes.Buffer, page layout.Page, cmd *cobra.Command) {
	wide := 0
	for _, c := range cmd.Commands() {
		wide = max(wide, len(c.Name()))
	}
	list := func(title string, commands []*cobra.Command) {
		if len(commands) == 0 {
			return
		}
		fmt.Fprintln(b)
		fmt.Fprintln(b, page.Paint(layout.Strong, title+":"))
		for _, c := range commands {
			for _, l := range page.Paragraph("  "+layout.Pad(c.Name(), wide)+"  ", c.Short) {
				fmt.Fprintln(b, l)
			}
		}
	}
	if len(cmd.Groups()) == 0 {
		list("Commands", slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() }))
		return
	}
	for _, g := range commandGroups {
		var commands []*cobra.Command
		for _, name := range g.commands {
			for _, c := range cmd.Commands() {
				if c.Name() == name && (c.IsAvailableCommand() || name == "help") {
					commands = append(commands, c)
				}
			}
		}
		list(g.title, commands)
	}
}
