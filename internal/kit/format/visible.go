package format

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible is a text as it may reach a terminal, whatever it came from: characters
// that a terminal obeys instead of showing them, or that reorder what is shown,
// become escapes such as \u001b, which JSON has too. Bytes that are not UTF-8 become
// \x9b and the like. Newlines and tabs stay.
func Visible(text string) string {
	if i := strings.IndexFunc(text, hidden); i < 0 && utf8.ValidString(text) {
		return text
	}
	var builder strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&builder, `\x%02x`, text[i])
		case hidden(r):
			fmt.Fprintf(&builder, `\u%04x`, r)
		default:
			builder.WriteRune(r)
		}
		i += n
	}
	return builder.String()
}

// hidden reports whether a character is obeyed and not shown: control characters,
// and marks that change the direction of a text.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' ||
		r == '\u2029' || r == '\ufeff')
}

// VisibleWriter passes what is written to it on as [Visible] texts. A character may
// come in several parts; what the last Write left incomplete is never written.
func VisibleWriter(w io.Writer) io.Writer { return &visibleWriter{w: w} }

type visibleWriter struct {
	w    io.Writer
	rest []byte // the begin of a character
}

// Write implements [io.Writer].
func (v *visibleWriter) Write(data []byte) (int, error) {
	text := append(v.rest, data...)
	end := len(text)
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		if i := len(text) - back; utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				end = i
			}
			break
		}
	}
	v.rest = append([]byte(nil), text[end:]...)
	if end == 0 {
		return len(data), nil
	}
	if _, err := io.WriteString(v.w, Visible(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap is the writer behind it.
func (v *visibleWriter) Unwrap() io.Writer { return v.w }

// Shorten cuts the middle out of a text that has more than most bytes: how it begins
// says what is wrong, and how it ends what to do.
func Shorten(text string, most int) string {
	const gap = " … "
	if len(text) <= most {
		return text
	}
	head := most * 2 / 3
	tail := len(text) - (most/3 - len(gap))
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + gap + text[tail:]
}
