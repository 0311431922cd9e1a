package layout

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
)

// Page is what a text is laid out for. Its zero value is a file: [Width] cells, and
// no colour.
type Page struct {
	// Width in cells; 0 means [Width].
	Width int
	// Colour marks what matters for a terminal.
	Colour bool
}

// Tone is how a text is marked on a terminal. What it says is in the text, too.
type Tone int

// The tones. Good and bad differ for people who cannot tell red from green.
const (
	Plain   Tone = iota
	Faint        // what frames the rest
	Strong       // a heading
	Good         // cyan
	Caution      // yellow
	Bad          // red
)

// tones are those of a terminal for what texts mean.
var tones = [...]Tone{
	document.Neutral: Plain, document.Minor: Faint, document.Good: Good, document.Caution: Caution, document.Bad: Bad,
}

// sequences are what a terminal obeys for a tone.
var sequences = [...]string{Plain: "", Faint: "\x1b[2m", Strong: "\x1b[1m", Good: "\x1b[36m", Caution: "\x1b[33m",
	Bad: "\x1b[31m"}

const reset = "\x1b[0m"

// Paint marks a text, which is made visible first: no name can mark itself.
func (p Page) Paint(tone Tone, text string) string {
	if !p.Colour || tone == Plain || text == "" {
		return p.visible(text)
	}
	return sequences[tone] + p.visible(text) + reset
}

// visible is what a terminal shows of a text. Without colour all of a page is made
// visible by who writes it.
func (p Page) visible(text string) string {
	if !p.Colour {
		return text
	}
	return format.Visible(text)
}

// Cells is the width in cells.
func (p Page) Cells() int { return cmp.Or(p.Width, Width) }

// Wrap breaks a text into lines; see [Wrap].
func (p Page) Wrap(text string) []string { return Wrap(p.visible(text), p.Cells()) }

// Title is the heading of a table, of which the capital letters are the name.
func (p Page) Title(text string) []string {
	out := p.Wrap(text)
	if !p.Colour {
		return out
	}
	for i, text := range out {
		name := 0
		if i == 0 {
			name = len(titleName(text))
		}
		out[i] = p.Paint(Strong, text[:name]) + p.Paint(Faint, text[name:])
	}
	return out
}

// titleName is the beginning of a title in capital letters.
func titleName(text string) string {
	if i := strings.IndexFunc(text, unicode.IsLower); i >= 0 {
		text = text[:strings.LastIndex(text[:i], " ")+1]
	}
	return strings.TrimRight(text, " ")
}

// Paragraph wraps text under a heading; see [Paragraph].
func (p Page) Paragraph(head, text string) []string {
	return Paragraph(head, p.visible(text), p.Cells())
}

// Painted is a text in which all but the marks of tones is as visible makes it.
func Painted(text string, visible func(string) string) string {
	var builder strings.Builder
	for text != "" {
		next := len(text)
		mark := ""
		for _, s := range append(sequences[Faint:len(sequences):len(sequences)], reset) {
			if i := strings.Index(text, s); i >= 0 && i < next {
				next = i
				mark = s
			}
		}
		builder.WriteString(visible(text[:next]) + mark)
		text = text[next+len(mark):]
	}
	return builder.String()
}
