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
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results/text/layout"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitGate        = 1   // a gate failed, a declared guarantee was broken, or a search found a violation
	ExitUsage       = 2   // the command line or an input file is wrong
	ExitFailed      = 3   // a run failed or its correctness figures are invalid
	ExitInterrupted = 130 // ended by Ctrl-C
)

// exitError is an error with the exit code that it asks for.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code int, err error) error { return &exitError{code, err} }

func usagef(format string, args ...any) error { return fail(ExitUsage, fmt.Errorf(format, args...)) }

// Main runs the command line and returns the exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	explore.ServeIsolated()
	sim.ServeIsolated()
	isolates = true
	ctx, stop := withSignals(context.Background(), stderr)
	defer stop()
	return execute(ctx, args, stdout, stderr)
}

// isolates is set where this program serves searches and simulations in processes of
// their own.
var isolates bool

// execute is [Main] but for the signals.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := Command(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(withArgs(ctx, args))
	if err == nil {
		return ExitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		// What cobra itself finds wrong is the command line.
		e = &exitError{ExitUsage, err}
	}
	const name = "quotabench:"
	text, _ := strings.CutPrefix(folded(stderr, name+" "+message(e)), name)
	fmt.Fprintln(stderr, layout.Page{Colour: coloured(root, stderr)}.Paint(layout.Bad, name)+text)
	return e.code
}

// Command returns the root command, for programs that add commands of their own.
func Command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "quotabench",
		Short: "Test whether rate limiters and quota checks enforce their limit, and what that costs",
		Long: "quotabench tests whether a rate limiter or quota check on Redis or PostgreSQL enforces its\n" +
			"limit under concurrency, and what that costs.",
		Example: "  quotabench run --quick                      # measure the core strategies, on this machine\n" +
			"  quotabench explore check-then-set           # the shortest schedule that leaks\n" +
			"  quotabench sim                              # the end of a month, in virtual time",
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          oneOfCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRun: completeFlags,
	}
	root.SetOut(format.VisibleWriter(stdout))
	root.SetErr(messages(stderr))
	addColour(root)
	root.SetVersionTemplate("quotabench {{.Version}}\n")
	root.AddCommand(runCommand(), listCommand(), doctorCommand())
	root.AddCommand(sweepCommand())
	root.AddCommand(simCommand())
	root.AddCommand(exploreCommand())
	root.AddCommand(chooseCommand())
	root.AddCommand(judgeCommand())
	root.AddCommand(compareCommand())
	root.AddCommand(exportCommand())
	root.AddCommand(plotCommand())
	root.AddCommand(mergeCommand())
	root.AddCommand(reportCommand())
	root.AddCommand(cleanCommand(), versionCommand(), manCommand())
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(badFlag)
	root.SetHelpFunc(showHelp)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	groupCommands(root)
	for _, c := range root.Commands() {
		if !c.Runnable() { // completion, which without a shell would exit with 0
			c.Args = oneOfCommands
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		for _, sub := range c.Commands() {
			sub.Args = noArgs
		}
	}
	return root
}

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

// helpCommand explains a command. Unlike cobra's own it makes an unknown one an
// error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Explain a command",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, noFiles
			}
			var out []cobra.Completion
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() {
					out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return out, noFiles
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && at.HasAvailableSubCommands() {
				return oneOfCommands(at, rest)
			}
			if len(rest) > 0 {
				return usagef("%s has no commands, but got %q (see %s --help)", at.CommandPath(), rest[0], at.CommandPath())
			}
			at.InitDefaultHelpFlag()
			at.InitDefaultVersionFlag()
			return at.Help()
		},
	}
}
