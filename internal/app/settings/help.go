package settings

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// HelpWidth is the greatest width of a help text, in cells.
const HelpWidth = 100

// screenWidth is that of the program's overview.
const screenWidth = 80

// titleAnnotation of a flag is the section that it stands in.
const titleAnnotation = "quotabench_title"

// commonAnnotation is on flags of the short help text.
const commonAnnotation = "quotabench_common"

// mostShort is how many settings a command has at most that shows all of them in its help text.
const mostShort = 18

// helpAll is the flag that asks for the long help text.
const helpAll = "help-all"

// HelpAsked is [pflag.ErrHelp] if a command is asked for its long help text.
func HelpAsked(cmd *cobra.Command) error {
	if cmd.Flags().Changed(helpAll) {
		return pflag.ErrHelp
	}
	return nil
}

// The sections of flags, in the order of the help text.
const (
	What     = "What to try"
	Stores   = "Stores"
	Load     = "Load"
	Workload = "The workload's own"
	Time     = "Virtual time"
	Search   = "The search"
	Trouble  = "Clients and trouble"
	Gates    = "Gates and comparisons"
	Output   = "Output"
	Other    = "Flags"
)

// fewFlags need no sections.
const fewFlags = 10

// TitleOf is the section of a flag.
func TitleOf(flag *pflag.Flag) string {
	if title := flag.Annotations[titleAnnotation]; len(title) > 0 && title[0] != "" {
		return title[0]
	}
	return Other
}

// CommandGroup are commands for one purpose, in the order of the help text.
type CommandGroup struct {
	Title    string
	Commands []*cobra.Command
}

// Help writes all that there is to say of a command. Of the root it is an overview.
func Help(groups []CommandGroup) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) {
		page, out := terminal.Page(cmd)
		page.Width = min(page.Cells(), HelpWidth)
		h := helper{page: page, short: cmd.Flags().Lookup(helpAll) != nil && !cmd.Flags().Changed(helpAll)}
		if cmd == cmd.Root() {
			h.overview(cmd, groups)
			_, _ = out.Write(h.Bytes()) // there is no one else to tell
			return
		}
		if text := strings.TrimSpace(cmd.Long); text != "" {
			if h.short {
				text, _, _ = strings.Cut(text, "\n\n")
			}
			h.lines(reflowed(page, text)...)
			h.lines("")
		} else if cmd.Short != "" {
			h.lines(cmd.Short, "")
		}
		h.usage(cmd)
		h.commands("Commands", cmd.Commands())
		h.flags(cmd)
		if cmd.HasAvailableSubCommands() {
			h.lines("", fmt.Sprintf("\"%s COMMAND --help\" says more about a command.", cmd.CommandPath()))
		}
		_, _ = out.Write(h.Bytes()) // there is no one else to tell
	}
}

// helper writes a help text.
type helper struct {
	bytes.Buffer
	page layout.Page
	// short leaves out what --help-all says: all but the first paragraph, the first examples, and the flags that most
	// people need, each in one line.
	short bool
}

func (h *helper) lines(all ...string) {
	for _, text := range all {
		h.WriteString(text + "\n")
	}
}

func (h *helper) head(title string) { h.lines(h.page.Paint(layout.Strong, title+":")) }

// overview is the help text of the root: its commands in groups, and its flags by name. It fits one screen.
func (h *helper) overview(root *cobra.Command, groups []CommandGroup) {
	h.page.Width = min(h.page.Width, screenWidth)
	h.lines(reflowed(h.page, strings.TrimSpace(root.Long))...)
	for _, group := range groups {
		h.commands(group.Title, group.Commands)
	}
	var flags []string
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + " " + name
		}
		flags = append(flags, name)
	})
	h.lines("", fmt.Sprintf("\"%s COMMAND --help\" says more about a command.", root.CommandPath()))
	h.lines("Flags: " + strings.Join(flags, ", "))
}

// usage writes how a command is called, with examples.
func (h *helper) usage(cmd *cobra.Command) {
	h.head("Usage")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		h.lines("  " + cmd.UseLine())
	} else {
		h.lines("  " + cmd.CommandPath() + " [command]")
	}
	if cmd.HasExample() {
		h.lines("")
		h.head("Examples")
		examples := strings.Split(cmd.Example, "\n")
		if h.short {
			examples = examples[:min(len(examples), shortExamples)]
		}
		h.lines(examples...)
	}
}

// commands lists commands, each in one line.
func (h *helper) commands(title string, commands []*cobra.Command) {
	commands = slices.DeleteFunc(slices.Clone(commands), func(cmd *cobra.Command) bool {
		return !cmd.IsAvailableCommand() && cmd.Name() != "help"
	})
	if len(commands) == 0 {
		return
	}
	wide := 0
	for _, cmd := range commands[0].Parent().Commands() {
		wide = max(wide, len(cmd.Name()))
	}
	h.lines("")
	h.head(title)
	for _, cmd := range commands {
		h.lines(h.page.Paragraph("  "+layout.Pad(cmd.Name(), wide)+"  ", cmd.Short)...)
	}
}

// flags writes the flags of a command, in sections if there are many.
func (h *helper) flags(cmd *cobra.Command) {
	sections := map[string]*pflag.FlagSet{}
	few := 0
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { // LocalFlags also makes those that all commands have
		if !flag.Hidden {
			few++
		}
	})
	add := func(flag *pflag.Flag) {
		_, common := flag.Annotations[commonAnnotation]
		if h.short && !common && flag.Name != "help" && flag.Name != helpAll {
			return
		}
		title := TitleOf(flag)
		if few < fewFlags {
			title = Other
		}
		set := sections[title]
		if set == nil {
			set = pflag.NewFlagSet(title, pflag.ContinueOnError)
			set.SortFlags = false
			sections[title] = set
		}
		if set.Lookup(flag.Name) == nil {
			set.AddFlag(flag)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if h.short {
		h.lines("")
		h.head(Other)
	}
	var short []*pflag.Flag
	for _, title := range []string{What, Stores, Load, Workload, Time, Search, Trouble, Gates, Output, Other} {
		set := sections[title]
		switch {
		case set == nil || !set.HasAvailableFlags():
		case h.short:
			set.VisitAll(func(flag *pflag.Flag) { short = append(short, flag) })
		default:
			h.lines("")
			h.head(title)
			h.WriteString(set.FlagUsagesWrapped(h.page.Cells()))
		}
	}
	h.lines(shortUsages(short, h.page)...)
}

// shortExamples is how many lines of examples the short help text has.
const shortExamples = 4

// shortUsages are flags, each in one line: its first phrase, and its default if there is room.
func shortUsages(flags []*pflag.Flag, page layout.Page) (out []string) {
	var names []string
	wide := 0
	for _, flag := range flags {
		value, _ := pflag.UnquoteUsage(flag)
		name := "      --" + flag.Name
		if flag.Shorthand != "" {
			name = "  -" + flag.Shorthand + ", --" + flag.Name
		}
		name = strings.TrimRight(name+" "+value, " ")
		wide = max(wide, layout.TextWidth(name))
		names = append(names, name)
	}
	for i, flag := range flags {
		usage := firstPhrase(flag, page.Cells()-wide-3)
		out = append(out, layout.Pad(names[i], wide)+"   "+usage)
	}
	return out
}

// firstPhrase is what is said of a flag up to the first semicolon, with its default if there is room. Brackets are left
// out for which there is none, or which the semicolon cuts.
func firstPhrase(flag *pflag.Flag, room int) string {
	_, usage := pflag.UnquoteUsage(flag)
	phrase, _, _ := strings.Cut(usage, "; ")
	opened := strings.Count(phrase, "(") > strings.Count(phrase, ")")
	if opened || layout.TextWidth(phrase) > room {
		phrase, _, _ = strings.Cut(phrase, " (")
	}
	switch flag.DefValue {
	case "", "0", "false", "[]":
		return phrase
	}
	withDefault := phrase + " (default " + flag.DefValue + ")"
	if layout.TextWidth(withDefault) > room {
		return phrase
	}
	return withDefault
}

// item is a line of a list: a word, and what is said of it in the next column.
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
		head = ""
		prose = nil
	}
	for name := range strings.SplitSeq(text, "\n") {
		if texts := item.FindStringSubmatch(name); texts != nil {
			flush()
			head = texts[1]
			prose = []string{texts[2]}
			continue
		}
		rest, inItem := strings.CutPrefix(name, strings.Repeat(" ", len(head)))
		switch {
		case inItem && head != "" && !strings.HasPrefix(rest, " "):
			prose = append(prose, rest)
			continue
		case head != "":
			flush()
		}
		if name != "" && !strings.HasPrefix(name, " ") && !strings.HasPrefix(name, "\t") {
			prose = append(prose, name)
			continue
		}
		flush()
		out = append(out, name)
	}
	flush()
	return out
}

//go:embed flags.txt
var flagTexts string

// texts are what flags.txt says, by "command name"; those of several commands have no command.
var texts = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	commands := []string{""}
	name := ""
	for line := range strings.Lines(flagTexts) {
		first, rest, named := strings.Cut(strings.TrimSpace(line), ": ")
		header, isHeader := strings.CutPrefix(first, "[")
		switch {
		case first == "" || first[0] == '#':
			continue
		case isHeader:
			commands = strings.Fields(strings.TrimSuffix(header, "]"))
			continue
		case line[0] == ' ':
			rest = " " + strings.TrimSpace(line)
		case named:
			name = first
		}
		for _, text := range commands {
			out[text+" "+name] += rest
		}
	}
	return out
})

// textOf is what help says of the flag of a command.
func textOf(command, name string) string { return cmp.Or(texts()[command+" "+name], texts()[" "+name]) }
