// Package cli is the quotabench command line: one file per command. It is
// importable, so that a program that registers strategies of its own can offer
// all of it with a main of one line:
//
//	func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
//
// Results go to standard output, progress and messages to standard error.
package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
)

func fail(code int, err error) error { return exit.With(code, err) }

func usagef(format string, args ...any) error { return exit.Usagef(format, args...) }

// commands by what they are for, in the order of the help text.
func commands() []commandGroup {
	return []commandGroup{
		{"run", "Try strategies out", []func() *cobra.Command{
			runCommand, simCommand, exploreCommand, claimsCommand, faultsCommand,
		}},
		{"read", "Use what was recorded", []func() *cobra.Command{
			reportCommand, compareCommand, judgeCommand,
		}},
		{"setup", "Find your way", []func() *cobra.Command{
			initCommand, listCommand, doctorCommand, helpCommand,
		}},
	}
}

type commandGroup struct {
	id, title string
	commands  []func() *cobra.Command
}

// Main runs the command line and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	harness.ServeIsolated()
	isolates = true
	ctx, stop := withSignals(context.Background(), stderr)
	defer stop()
	code := execute(ctx, args, stdout, stderr)
	if by := version.GoRun(); by != "" && terminal.Is(stdout) {
		fmt.Fprintf(stderr, "In a command that is printed here, write %q for \"quotabench\".\n", by)
	}
	return code
}

// isolates is set if this program serves searches and simulations in processes of
// their own.
var isolates bool

// execute is [Main] without the signals.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := Command(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(session.WithArgs(ctx, args))
	if err == nil {
		return exit.OK
	}
	code := exit.Usage // what cobra itself finds wrong is the command line
	if e, ok := errors.AsType[*exit.Error](err); ok {
		code = e.Code
		err = e
	}
	const name = "quotabench:"
	text, _ := strings.CutPrefix(terminal.Folded(stderr, name+" "+terminal.Message(err)), name)
	fmt.Fprintln(stderr, layout.Page{Colour: terminal.Coloured(stderr)}.Paint(layout.Bad, name)+text)
	return code
}

// Command returns the root command, for programs that add commands of their own.
func Command(stdout, stderr io.Writer) *cobra.Command {
	root := described("quotabench", &cobra.Command{
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          oneOfCommands,
		RunE:          showHelp,

		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			settings.CompleteFlags(cmd, args)
			return settings.HelpAsked(cmd)
		},
	})
	root.SetOut(format.VisibleWriter(stdout))
	root.SetErr(terminal.Messages(stderr))
	root.SetVersionTemplate(versionText())
	var groups []settings.CommandGroup
	for _, commandGroup := range commands() {
		root.AddGroup(&cobra.Group{ID: commandGroup.id, Title: commandGroup.title})
		group := settings.CommandGroup{Title: commandGroup.title}
		for _, command := range commandGroup.commands {
			cmd := command()
			cmd.GroupID = commandGroup.id
			group.Commands = append(group.Commands, cmd)
		}
		root.AddCommand(group.Commands...)
		groups = append(groups, group)
	}
	root.SetFlagErrorFunc(settings.BadFlag)
	completion := addCompletion(root)
	last := &groups[len(groups)-1]
	completion.GroupID, last.Commands = root.Groups()[len(groups)-1].ID, append(last.Commands, completion)
	root.SetHelpFunc(settings.Help(groups))
	return root
}

// addCompletion adds cobra's own commands. Unlike cobra it refuses an unknown shell.
func addCompletion(root *cobra.Command) *cobra.Command {
	help, _, _ := root.Find([]string{"help"})
	root.SetHelpCommand(help)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.Short = "Write the completion file of a shell"
	completion.Args = oneOfCommands
	completion.RunE = showHelp
	for _, shell := range completion.Commands() {
		shell.Args = noArgs
	}
	return completion
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// oneOfCommands refuses what is not a command of cmd.
func oneOfCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("%w (see %s --help)", quota.Unknown("command", args[0], names, ""), cmd.CommandPath())
}

//go:embed commands/*.txt
var commandTexts embed.FS

// described gives a command the text of the file of its name: a line on how it is used, a line on what it is for,
// and after blank lines an explanation and examples.
func described(name string, cmd *cobra.Command) *cobra.Command {
	data, err := commandTexts.ReadFile("commands/" + name + ".txt")
	if err != nil {
		panic(err) // the files are part of the program
	}
	text, examples, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n\nExamples:\n")
	head, long, _ := strings.Cut(text, "\n\n")
	cmd.Use, cmd.Short, _ = strings.Cut(head, "\n")
	cmd.Long = long
	cmd.Example = examples
	cmd.Args = given(cmd.Args)
	return cmd
}

// withSignals returns a context that ends at the first Ctrl-C, SIGTERM or SIGHUP, so
// that a run can write what it has, stop its servers and remove what it keeps in those
// of others. A second Ctrl-C or SIGTERM ends the process at once. A second SIGHUP does
// not: a terminal that is closed may send two.
func withSignals(ctx context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, endings()...)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case sig := <-ch:
				if n > 0 && sig != syscall.SIGHUP {
					os.Exit(exit.Interrupted)
				}
				cancel() // first: a terminal that is gone may keep the message waiting
				if n == 0 {
					fmt.Fprintln(stderr, "\nstopping: results so far are kept (again to stop at once)")
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel()
	}
}

// endings are the signals that ask the program to end. Under nohup SIGHUP stays
// ignored.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
