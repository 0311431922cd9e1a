// Package terminal is what a person sees of a command: pages as wide as the terminal, messages
// without passwords, colour, and how far the command has come.
package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
	"github.com/quotabench/quotabench/internal/redact"
)

// MaxMessage is how long an error may be, in bytes: about six lines of a terminal.
const MaxMessage = 500

// Message is an error as it is shown: one line, without passwords, without what a
// terminal would obey, and not too long.
func Message(err error) string {
	return format.Shorten(format.Visible(redact.All(format.OneLine(err.Error()))), MaxMessage)
}

// Messages is a writer for standard error: what is echoed there may hold the password
// of a URL that was typed into the wrong flag.
func Messages(w io.Writer) io.Writer {
	return &redacting{format.VisibleWriter(w), w}
}

type redacting struct{ w, raw io.Writer }

// Write implements [io.Writer]. Each call writes whole lines.
func (r *redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, Folded(r.raw, redact.All(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap is the writer behind it, which may be a terminal.
func (r *redacting) Unwrap() io.Writer { return r.raw }

// of is the terminal behind a writer, if it is one.
func of(w io.Writer) (*os.File, bool) {
	f, ok := unwrapped(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// Is reports whether a writer ends at a terminal.
func Is(w io.Writer) bool {
	_, ok := of(w)
	return ok
}

// unwrapped is the writer that a program was given.
func unwrapped(w io.Writer) io.Writer {
	if u, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return u.Unwrap()
	}
	return w
}

// Folded is a message whose lines are no wider than the terminal behind w, so that none
// breaks within a word; unchanged if there is no terminal. Lines of commands, which are
// there to be copied, are indented, and stay.
func Folded(w io.Writer, text string) string {
	if width := screenWidth(w); width > 0 {
		return foldLines(text, width)
	}
	return text
}

func foldLines(text string, width int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		whole, broken := strings.CutSuffix(line, "\n")
		if layout.TextWidth(whole) > width && !strings.HasPrefix(whole, "    ") {
			whole = strings.Join(layout.Wrap(whole, width), "\n")
		}
		out.WriteString(whole)
		if broken {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
