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
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitGate        = 1   // a gate failed or a declared guarantee was broken
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
	ctx, stop := withSignals(context.Background(), stderr)
	defer stop()
	root := Command(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	var e *exitError
	if !errors.As(err, &e) {
		// What cobra itself finds wrong is the command line.
		e = &exitError{ExitUsage, err}
	}
	if msg := e.Error(); msg != "" {
		fmt.Fprintln(stderr, "quotabench: "+msg)
	}
	return e.code
}

// Command returns the root command, for programs that add commands of their own.
func Command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "quotabench",
		Short: "Measure quota strategies: latency percentiles, over-quota leakage and drift",
		Long: "quotabench runs interchangeable quota strategies on real Redis and PostgreSQL under\n" +
			"concurrent workloads, and reports how fast they are, how much they admit over the\n" +
			"limit, what they reject wrongly, and how far their counters drift from the truth.",
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("quotabench {{.Version}}\n")
	root.AddCommand(runCommand(), listCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	return root
}

// Version is the module's version and commit, as far as the build knows them.
func Version() string {
	version, commit := buildVersion()
	if commit != "" {
		return version + " (" + commit + ")"
	}
	return version
}

func buildVersion() (version, commit string) {
	version = "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, ""
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		version = v
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if dirty {
		commit += "+changes"
	}
	return version, commit
}
