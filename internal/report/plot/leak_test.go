package plot

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// The watermark of few rows leaves the texts around them free.
func TestWatermarkOfOneRow(t *testing.T) {
	f := fixture.New(6, fixture.Strategies[0])
	f.Kind = results.Simulated
	checkSVG(t, "one row", fixture.Must[*Plot](t)(Leak(f)))
}

// A row has a mark for the leak and one for p99, at one height. The name of the row that none
// beats is bold: here the fastest, which leaks nothing.
func TestLeakRows(t *testing.T) {
	svg := fixture.Must[[]byte](t)(fixture.Must[*Plot](t)(Leak(fixture.New(6, fixture.Strategies[0],
		fixture.Strategies[3]))).SVG())
	for name, colour := range map[string]string{"incr-expire": "0072B2", "check-then-set": "D55E00"} {
		var heights []string
		for _, m := range regexp.MustCompile(`d="M[\d.]+,([\d.]+)[^>]*fill:#`+colour).FindAllSubmatch(svg, -1) {
			heights = append(heights, string(m[1]))
		}
		if len(heights) != 3 || heights[0] != heights[1] || heights[0] == heights[2] { // the last one is the legend's
			t.Errorf("%s: marks at the heights %q", name, heights)
		}
		line := regexp.MustCompile(`<text [^>]*>` + name + `</text>`).Find(svg)
		if bold := bytes.Contains(line, []byte(`font-weight="bold"`)); line == nil || bold != (name == "incr-expire") {
			t.Errorf("the name of %s: %s", name, line)
		}
	}
}
