package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/internal/terminal"
)

// jsonFlag is --json of commands that say with it what they read and wrote.
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
		if err = s.Read(args); err == nil {
			out, err = configure()
		}
		return out, err
	})
}

// freeFile refuses a file that is there, and a folder that is not.
func freeFile(s *settings.Set, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return usagef("--out: %s is there already: name another file, or move it away", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return usagef("--out: %w", format.Unreadable(path, err))
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("--out: %s is no folder: make it, or name another file", filepath.Dir(path))
	}
	return session.CanWrite(s, "out", filepath.Dir(path))
}

// readSkew reads how far clocks are ahead.
func readSkew(s *group.Settings, texts []string) (out []time.Duration, err error) {
	for _, x := range group.Items(texts) {
		d, err := time.ParseDuration(x)
		if err != nil {
			return nil, s.Wrong("skew", fmt.Errorf("give times such as 0s,2s,-2s, not %q", x))
		}
		out = append(out, d)
	}
	return out, nil
}

// written is what a command made of records, as --json shows it.
type written struct {
	// Records are the files and directories that were given.
	Records []string `json:"records"`
	// Files that were made, in their order.
	Files []writtenFile `json:"files"`
	// Runs that the record holds; of merge alone.
	Runs int `json:"runs,omitempty"`
	// Notes say what could not be made, and why.
	Notes []string `json:"notes,omitempty"`

	asJSON bool
}

type writtenFile struct {
	// Name of the file with its directory, or alone if it was not written.
	Name string `json:"name"`
	// Bytes is its size.
	Bytes int `json:"bytes"`
	// Text is what it would hold; empty if it was written.
	Text string `json:"text,omitempty"`
}

func (w *written) add(name string, content []byte) {
	w.Files = append(w.Files, writtenFile{Name: name, Bytes: len(content)})
}

// tell writes it where it was asked for.
func (w *written) tell(out io.Writer) error {
	if !w.asJSON {
		return nil
	}
	return fail(ExitFailed, encodeJSON(out, w))
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
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
