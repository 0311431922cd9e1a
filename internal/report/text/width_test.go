package text

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// From 80 columns up every line fits, and no word of a table is broken: what is on the
// page without blanks and line breaks is the same at every width.
func TestTableFitsEveryWidth(t *testing.T) {
	for name, f := range fixture.Cases() {
		f.Summaries = f.Summarised() // once for all widths
		for _, width := range []int{80, 100, 120, 200} {
			var b bytes.Buffer
			if err := Table(&b, layout.Page{Width: width}, f); err != nil {
				t.Fatal(err)
			}
			for i, l := range strings.Split(b.String(), "\n") {
				if w := uniseg.StringWidth(l); w > width {
					t.Errorf("%s: line %d is %d cells wide, of %d: %s", name, i+1, w, width, l)
				}
				if strings.ContainsAny(l, "\x1b\r\t") {
					t.Errorf("%s: line %d has control characters: %q", name, i+1, l)
				}
				if strings.HasSuffix(l, " ") {
					t.Errorf("%s: line %d ends in a space", name, i+1)
				}
			}
			if name != "core" {
				continue
			}
			for _, word := range []string{"check-then-set", "BROKEN", "throughput"} {
				for cut := 4; cut < len(word)-3; cut++ {
					if regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(word[:cut])+`(\s|$)`).MatchString(b.String()) && word[cut-1] != '-' {
						t.Errorf("at %d cells a line ends within %s, after %s", width, word, word[:cut])
					}
				}
			}
		}
	}
}

var marking = regexp.MustCompile("\x1b\\[[0-9]+m")

// Colour changes no character of a page, and what is not from here has none.
func TestColourOnlyMarks(t *testing.T) {
	f := fixture.Cases()["core"]
	f.Provenance.Host.Name = "\x1b[31mhost\x1b[0m"
	var plain, coloured bytes.Buffer
	if err := Table(&plain, layout.Page{}, f); err != nil {
		t.Fatal(err)
	}
	if err := Table(&coloured, layout.Page{Colour: true}, f); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[31mBROKEN\x1b[0m") {
		t.Error("a broken guarantee is not marked")
	}
	if strings.Contains(coloured.String(), "\x1b[31mhost") {
		t.Error("a name marks itself")
	}
	if got := marking.ReplaceAllString(coloured.String(), ""); got != plain.String() {
		t.Error("without its marks the page is another one")
	}
}
