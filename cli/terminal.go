package cli

import (
	"io"

	"github.com/quotabench/quotabench/internal/format"
)

// maxMessage is how long an error may be, in bytes: about six lines of a terminal.
const maxMessage = 500

// message is an error as it is shown: one line, without passwords, without what a
// terminal would obey, and not too long.
func message(err error) string {
	return format.Shorten(format.Visible(redact(format.OneLine(err.Error()))), maxMessage)
}

// messages is a writer for standard error: what is echoed there may hold the password
// of a URL that was typed into the wrong flag.
func messages(w io.Writer) io.Writer {
	return &redacting{format.VisibleWriter(w), w}
}

type redacting struct{ w, raw io.Writer }

// Write implements [io.Writer]. Each call writes whole lines.
func (r *redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Unwrap is the writer behind it, which may be a terminal.
func (r *redacting) Unwrap() io.Writer { return r.raw }

// unwrapped is the writer that a program was given.
func unwrapped(w io.Writer) io.Writer {
	if u, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return u.Unwrap()
	}
	return w
}
