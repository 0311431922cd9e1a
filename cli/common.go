package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// jsonFlag is --json of commands that show what they found.
func jsonFlag(p *bool, doc string) settings.Setting {
	return settings.Setting{Name: "json", Title: settings.Output, Value: settings.Bool(p), Doc: doc, FlagOnly: true}
}

// noArgs refuses arguments in one line that says what was meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, but got %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// given refuses an empty argument, e.g. of a variable that is not set: it would stand for the current directory, or for
// everything.
func given(further cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if i := slices.Index(args, ""); i >= 0 {
			return usagef("argument %d of %s is empty: give a value, or leave it out", i+1, cmd.CommandPath())
		}
		if further == nil {
			return nil
		}
		return further(cmd, args)
	}
}

// needs refuses fewer arguments than least, or more than most, which is 0 for any number. The
// text may say how many there are.
func needs(least, most int, text string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) >= least && (most == 0 || len(args) <= most) {
			return nil
		}
		return usagef("%s", strings.ReplaceAll(text, "%d", fmt.Sprint(len(args))))
	}
}

// workedOut is what the settings of a command come to, once they are read. That is given up at the first signal.
func workedOut[T any](cmd *cobra.Command, s *group.Settings, args []string, configure func() (T, error)) (T, error) {
	return session.Before(cmd.Context(), func() (out T, err error) {
		err = s.Read(args)
		if err == nil {
			out, err = configure()
		}
		return out, err
	})
}

// readSkew reads how far clocks are ahead.
func readSkew(s *group.Settings, texts []string) (out []time.Duration, err error) {
	for _, text := range group.Items(texts) {
		duration, err := time.ParseDuration(text)
		if err != nil {
			return nil, s.Wrong("skew", fmt.Errorf("give times such as 0s,2s,-2s, not %q", text))
		}
		out = append(out, duration)
	}
	if len(texts) > 0 && len(out) == 0 {
		return nil, s.Wrong("skew", errors.New("give times such as 0s,2s,-2s, and not only commas"))
	}
	return out, nil
}

// show writes what a command found: as one document, or as text for people.
func show[T any](cmd *cobra.Command, asJSON bool, found T, lines func(layout.Page, T) []string) error {
	if asJSON {
		return encodeJSON(cmd.OutOrStdout(), found)
	}
	page, out := terminal.Page(cmd)
	_, err := io.WriteString(out, strings.Join(lines(page, found), "\n")+"\n")
	return err
}

// encodeJSON writes one document.
func encodeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
