package cli

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
)

// everyCommand calls f with each command that is offered.
func everyCommand(root *cobra.Command, f func(*cobra.Command)) {
	f(root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			everyCommand(c, f)
		}
	}
}

// mostLines is how many lines a help text has that nobody asked for all of.
const mostLines = 40

// TestHelpIsShort: what a command says of itself fits on a screen, and of each flag it says one phrase that fits in a
// line.
func TestHelpIsShort(t *testing.T) {
	everyCommand(Command(io.Discard, io.Discard), func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		for _, columns := range []int{80, 100} {
			t.Setenv("COLUMNS", strconv.Itoa(columns))
			help := call(t.Context(), args...)
			if lines := strings.Count(help.stdout, "\n"); lines > mostLines {
				t.Errorf("%s has %d lines of %d columns, want at most %d", cmd.CommandPath(), lines, columns, mostLines)
			}
			for _, line := range flagLine.FindAllString(help.stdout, -1) {
				if uniseg.StringWidth(line) > columns {
					t.Errorf("%s is wider than %d columns: %s", cmd.CommandPath(), columns, line)
				}
			}
		}
	})
}

// flagLine is the line that explains a flag.
var flagLine = regexp.MustCompile(`(?m)^(  -[a-z], |      )--[a-z-]+( \S+)?   .*`)

// Help fits into 100 columns, and each command and flag stands in a group.
func TestHelpFits(t *testing.T) {
	newPlace(t, nil)
	everyCommand(Command(io.Discard, io.Discard), func(c *cobra.Command) {
		args := strings.Fields(c.CommandPath())[1:]
		o := call(t.Context(), append(args, "--help")...)
		all := o
		if c.Flags().Lookup("help-all") != nil {
			all = call(t.Context(), append(args, "--help-all")...)
		}
		n := 0
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && c.HasParent() { // the root names its flags in one line
				n++
			}
		})
		if got := len(flagLine.FindAllString(all.stdout, -1)); all.code != exit.OK || got < n {
			t.Errorf("%q: exit %d, %d flags, want %d", all.args, all.code, got, n)
		}
		for l := range strings.Lines(o.stdout + all.stdout) {
			if w := uniseg.StringWidth(strings.TrimRight(l, "\n")); w > settings.HelpWidth {
				t.Errorf("%s --help has a line of %d columns: %s", c.CommandPath(), w, l)
			}
		}
		if len(c.Short) > 86 || c.Short == "" {
			t.Errorf("%s is explained in %d characters", c.CommandPath(), len(c.Short))
		}
		if c.Parent() == c.Root() && c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
		switch c.Name() {
		case "run", "sim", "explore":
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if settings.TitleOf(f) == settings.Other && !strings.HasPrefix(f.Name, "help") {
					t.Errorf("--%s of %s is in no group", f.Name, c.Name())
				}
			})
		}
	})
}

// The help of the program fits one screen of 24 lines and 80 columns.
func TestHelpFitsAScreen(t *testing.T) {
	o := call(t.Context(), "--help")
	lines := 0
	for line := range strings.Lines(o.stdout) {
		if uniseg.StringWidth(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than a screen: %s", line)
		}
		lines++
	}
	if lines < 13 || lines > 24 {
		t.Errorf("%d lines:\n%s", lines, o.stdout)
	}
}

// A flag has one meaning in all commands.
func TestFlagsMeanTheSame(t *testing.T) {
	kinds := map[string]string{}
	everyCommand(Command(io.Discard, io.Discard), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "out" && f.Shorthand != "o" {
				t.Errorf("--out of %s is not -o", c.Name())
			}
			if got := f.Value.Type(); kinds[f.Name] == "" {
				kinds[f.Name] = got
			} else if kinds[f.Name] != got {
				t.Errorf("--%s of %s is %s, and of another command %s", f.Name, c.Name(), got, kinds[f.Name])
			}
		})
	})
}

// words splits a line of an example as a shell does.
func words(line string) (out []string) {
	var word strings.Builder
	quote := rune(0)
	any := false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
			any = true
		case quote == 0 && r == ' ':
			if any {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	return out
}

// Each example is a command line that the flags of its command take.
func TestExamplesParse(t *testing.T) {
	examples := 0
	everyCommand(Command(io.Discard, io.Discard), func(c *cobra.Command) {
		for line := range strings.SplitSeq(strings.ReplaceAll(c.Example, "\\\n", ""), "\n") {
			line, _, _ = strings.Cut(line, "  # ")
			for part := range strings.SplitSeq(line, "&&") {
				part, _, _ = strings.Cut(part, " > ")
				args := words(part)
				if len(args) == 0 || args[0] != "quotabench" {
					continue
				}
				root := Command(io.Discard, io.Discard)
				at, rest, err := root.Find(args[1:])
				if err == nil {
					err = at.ParseFlags(rest)
				}
				if err == nil {
					err = at.ValidateArgs(at.Flags().Args())
				}
				if err != nil {
					t.Errorf("%s: %q: %v", c.CommandPath(), part, err)
				}
				examples++
			}
		}
	})
	if examples < 30 {
		t.Errorf("%d examples", examples)
	}
}
