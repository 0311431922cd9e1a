// Package terminal is what a person sees of a command: pages as wide as the terminal, messages
// without passwords, colour, and how far the command has come.
package terminal

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/report/text/layout"
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
func (r *redacting) Write(data []byte) (int, error) {
	if _, err := io.WriteString(r.w, Folded(r.raw, redact.All(string(data)))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap is the writer behind it, which may be a terminal.
func (r *redacting) Unwrap() io.Writer { return r.raw }

// of is the terminal behind a writer, if it is one.
func of(w io.Writer) (*os.File, bool) {
	file, ok := unwrapped(w).(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, false
	}
	return file, true
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

// Coloured reports whether what is written to w is to have colour: on a terminal, unless NO_COLOR is set or TERM is
// dumb, and elsewhere if CLICOLOR_FORCE or FORCE_COLOR is set, to something other than 0.
func Coloured(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	for _, name := range []string{"CLICOLOR_FORCE", "FORCE_COLOR"} {
		if text := os.Getenv(name); text != "" && text != "0" {
			return true
		}
	}
	return Is(w) && os.Getenv("TERM") != "dumb"
}

// The least and the greatest width of a page: tables of less cannot be read, and
// lines of more neither.
const (
	leastPage = 60
	mostPage  = 240
)

// Page is the standard output of a command, and what is laid out for it: as wide as
// the terminal, or as COLUMNS says; otherwise as a file is.
func Page(cmd *cobra.Command) (layout.Page, io.Writer) {
	out := cmd.OutOrStdout()
	page := layout.Page{Colour: Coloured(out)}
	page.Width = screenWidth(out)
	if page.Width == 0 {
		page.Width = columns()
	}
	if page.Colour {
		out = &painting{w: unwrapped(out)}
	}
	return page, out
}

// columns is the width that COLUMNS asks for, within bounds; 0 if it does not.
func columns() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return min(max(n, leastPage), mostPage)
	}
	return 0
}

// screenWidth is the width of the terminal behind a writer, or what COLUMNS says of it,
// within bounds; 0 if there is none.
func screenWidth(w io.Writer) int {
	screen, ok := of(w)
	if !ok {
		return 0
	}
	if n := columns(); n > 0 {
		return n
	}
	width, _, err := term.GetSize(int(screen.Fd()))
	if err != nil || width <= 0 {
		return 0
	}
	return min(max(width, leastPage), mostPage)
}

// painting is a writer for texts with the colours of a page. All else that a terminal
// would obey is made visible.
type painting struct {
	w    io.Writer
	rest []byte // an incomplete line
}

// Write implements [io.Writer]. What follows the last line break waits for another.
func (p *painting) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 {
		return len(data), nil
	}
	_, err := io.WriteString(p.w, layout.Painted(string(p.rest[:end]), format.Visible))
	p.rest = append([]byte(nil), p.rest[end:]...)
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap is the writer behind it, which may be a terminal.
func (p *painting) Unwrap() io.Writer { return p.w }
