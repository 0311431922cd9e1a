package terminal

import (
	"bytes"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/present/text/layout"
)

// ColourFlag is the flag of all commands, and the rest are its values.
const (
	ColourFlag   = "color"
	ColourAuto   = "auto"
	ColourAlways = "always"
	ColourNever  = "never"
)

// Coloured reports whether what is written to w is to have colour.
func Coloured(cmd *cobra.Command, w io.Writer) bool {
	mode := ColourAuto
	if f := cmd.Root().PersistentFlags().Lookup(ColourFlag); f != nil {
		mode = f.Value.String()
	}
	screen := Is(w)
	return mode == ColourAlways || mode == ColourAuto && screen && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The least and the greatest width of a page: tables of less cannot be read, and
// lines of more neither.
const (
	leastPage = 60
	mostPage  = 240
)

// Page is the standard output of a command, and what is laid out for it: as wide as
// the terminal, or as COLUMNS says; elsewhere as a file is.
func Page(cmd *cobra.Command) (layout.Page, io.Writer) {
	out := cmd.OutOrStdout()
	page := layout.Page{Colour: Coloured(cmd, out)}
	if page.Width = screenWidth(out); page.Width == 0 {
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
func (p *painting) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 {
		return len(b), nil
	}
	_, err := io.WriteString(p.w, layout.Painted(string(p.rest[:end]), format.Visible))
	p.rest = append([]byte(nil), p.rest[end:]...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// Unwrap is the writer behind it, which may be a terminal.
func (p *painting) Unwrap() io.Writer { return p.w }
