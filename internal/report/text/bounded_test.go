package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/text/layout"
)

// TestTextIsBounded: wrapping takes quadratic time in the length of a text.
func TestTextIsBounded(t *testing.T) {
	f := fixture.New(2, fixture.Strategies[:2]...)
	for i := range f.Runs {
		f.Runs[i].FirstError = strings.Repeat("x y", 1<<20)
		f.Runs[i].Errors = 1
	}
	var b bytes.Buffer
	if err := Table(&b, layout.Page{}, f); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 50_000 {
		t.Errorf("a table of %d bytes", b.Len())
	}
}
