package e2e

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestBadFlags: the program itself refuses flags that it does not have and values that they do not take, in one line.
func TestBadFlags(t *testing.T) {
	testenv.Sequential(t)
	var all [][]string
	for _, cmd := range cli.Command(nil, nil).Commands() {
		all = append(all, badFlagsOf(cmd)...)
	}
	const most = 50
	if len(all) < most {
		t.Fatalf("%d command lines", len(all))
	}
	for i := range most {
		args := all[i*len(all)/most]
		code, stdout, stderr := execute(t, args...)
		if code != exit.Usage || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.HasPrefix(stderr, "quotabench: ") {
			t.Errorf("%q: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// badFlagsOf are two command lines for each flag of a command.
func badFlagsOf(cmd *cobra.Command) (all [][]string) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		all = append(all, []string{cmd.Name(), "--" + flag.Name + "x=1"})
		if kind := flag.Value.Type(); kind == "int" || kind == "float" || kind == "duration" || kind == "bool" {
			all = append(all, []string{cmd.Name(), "--" + flag.Name + "=\x1b[31mNaN"})
		}
	})
	return all
}
