package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
)

// svgBox is where a text stands in a document, by the corners of its box.
type svgBox struct {
	text    string
	corners [4][2]float64
}

// matrix is an affine map in the order of SVG.
type matrix [6]float64

func (m matrix) mul(n matrix) matrix {
	return matrix{m[0]*n[0] + m[2]*n[1], m[1]*n[0] + m[3]*n[1], m[0]*n[2] + m[2]*n[3], m[1]*n[2] + m[3]*n[3],
		m[0]*n[4] + m[2]*n[5] + m[4], m[1]*n[4] + m[3]*n[5] + m[5]}
}

func (m matrix) apply(x, y float64) [2]float64 {
	return [2]float64{m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]}
}

var transforms = regexp.MustCompile(`(scale|translate|rotate)\(([^)]*)\)`)

func transform(t *testing.T, attr string) matrix {
	t.Helper()
	m := matrix{1, 0, 0, 1, 0, 0}
	for _, f := range transforms.FindAllStringSubmatch(attr, -1) {
		var v []float64
		for _, s := range strings.Split(f[2], ",") {
			v = append(v, fixture.Must[float64](t)(strconv.ParseFloat(strings.TrimSpace(s), 64)))
		}
		switch f[1] {
		case "scale":
			m = m.mul(matrix{v[0], 0, 0, v[1], 0, 0})
		case "translate":
			m = m.mul(matrix{1, 0, 0, 1, v[0], v[1]})
		case "rotate":
			sin, cos := math.Sincos(v[0] * math.Pi / 180)
			m = m.mul(matrix{cos, sin, -sin, cos, 0, 0})
		}
	}
	return m
}

// svgDocument is what tests need of a document.
type svgDocument struct {
	width, height float64
	title, desc   string
	ids           []string
	boxes         []svgBox
	text          string // all of it, in one line
}

// readSVG reads a document, and fails if it is not well-formed. The widths of texts
// are measured with the font's own metrics and have to agree with what they state.
func readSVG(t *testing.T, b []byte) svgDocument {
	t.Helper()
	var doc svgDocument
	var all []string
	dec := xml.NewDecoder(bytes.NewReader(b))
	stack := []matrix{{1, 0, 0, 1, 0, 0}}
	var open []xml.StartElement
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			doc.text = strings.Join(strings.Fields(strings.Join(all, " ")), " ")
			return doc
		}
		if err != nil {
			t.Fatalf("svg: %v", err)
		}
		switch e := tok.(type) {
		case xml.StartElement:
			stack = append(stack, stack[len(stack)-1].mul(transform(t, attr(e, "transform"))))
			open = append(open, e.Copy())
			if id := attr(e, "id"); id != "" {
				doc.ids = append(doc.ids, id)
			}
			if e.Name.Local == "svg" {
				if _, err := fmt.Sscanf(attr(e, "viewBox"), "0 0 %f %f", &doc.width, &doc.height); err != nil {
					t.Fatalf("viewBox: %v", err)
				}
				if attr(e, "role") != "img" {
					t.Error("the document is no image to a screen reader")
				}
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
			open = open[:len(open)-1]
		case xml.CharData:
			all = append(all, string(e))
			switch in := open[max(len(open)-1, 0):]; {
			case len(in) == 0:
			case in[0].Name.Local == "title":
				doc.title = string(e)
			case in[0].Name.Local == "desc":
				doc.desc = string(e)
			case in[0].Name.Local == "text":
				doc.boxes = append(doc.boxes, box(t, in[0], string(e), stack[len(stack)-1]))
			}
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func box(t *testing.T, e xml.StartElement, text string, m matrix) svgBox {
	t.Helper()
	num := func(name string) float64 { return fixture.Must[float64](t)(strconv.ParseFloat(attr(e, name), 64)) }
	size := num("font-size")
	stated := num("textLength")
	x := num("x")
	y := num("y")
	s := textStyle(size, ink, attr(e, "font-weight") == "bold")
	if strings.Contains(attr(e, "font-family"), "Mono") {
		s.Font = monoFont(size)
	}
	if w := float64(s.Width(text)); math.Abs(w-stated) > 0.01*w+0.1 {
		t.Errorf("%q states a width of %g and has %g", text, stated, w)
	}
	// Letters without accents and without most descenders: lines of one block touch.
	up := size * 0.72
	down := size * 0.05
	return svgBox{text, [4][2]float64{m.apply(x, y-up), m.apply(x+stated, y-up), m.apply(x+stated, y+down),
		m.apply(x, y+down)}}
}

// bounds of a box that is not turned, or by a quarter.
func (b *svgBox) bounds() (x0, y0, x1, y1 float64) {
	x0 = math.Inf(1)
	y0 = math.Inf(1)
	x1 = math.Inf(-1)
	y1 = math.Inf(-1)
	for _, c := range b.corners {
		x0 = min(x0, c[0])
		y0 = min(y0, c[1])
		x1 = max(x1, c[0])
		y1 = max(y1, c[1])
	}
	return
}

// clipped and overlapping texts of a document; the watermark lies under all that is drawn later.
func (d *svgDocument) faults() (out []string) {
	const slack = 0.5
	for i := range d.boxes {
		b := &d.boxes[i]
		x0, y0, x1, y1 := b.bounds()
		if x0 < -slack || y0 < -slack || x1 > d.width+slack || y1 > d.height+slack {
			out = append(out, fmt.Sprintf("%q is cut off: %.0f,%.0f to %.0f,%.0f of %.0f x %.0f", b.text, x0, y0, x1, y1,
				d.width, d.height))
		}
		if strings.TrimSpace(b.text) == "" {
			continue
		}
		for j := range d.boxes[:i] {
			o := &d.boxes[j]
			if o.text == "SIMULATED" || strings.TrimSpace(o.text) == "" {
				continue
			}
			u0, v0, u1, v1 := o.bounds()
			if x0+slack < u1 && u0+slack < x1 && y0+slack < v1 && v0+slack < y1 {
				out = append(out, fmt.Sprintf("%q and %q overlap", b.text, o.text))
			}
		}
	}
	return out
}

// checkSVG draws a plot and requires a sound document.
func checkSVG(t *testing.T, name string, p *Plot) svgDocument {
	t.Helper()
	b := fixture.Must[[]byte](t)(p.SVG())
	doc := readSVG(t, b)
	for i, f := range doc.faults() {
		if i < 5 {
			t.Errorf("%s: %s", name, f)
		}
	}
	if len(doc.boxes) < 5 {
		t.Errorf("%s: %d texts", name, len(doc.boxes))
	}
	if doc.title != p.Title() || doc.desc == "" || doc.desc != p.Desc() {
		t.Errorf("%s: titled %q, described %q", name, doc.title, doc.desc)
	}
	if len(doc.ids) != 2 || doc.ids[0] == "title" {
		t.Errorf("%s: identifiers %q, which may be another's too", name, doc.ids)
	}
	if len(b) > 150_000 {
		t.Errorf("%s: %d bytes", name, len(b))
	}
	if !bytes.HasPrefix(b, []byte("<svg ")) || bytes.Contains(b, []byte("style=\"font-family")) {
		t.Errorf("%s: cannot stand in a page, or its fonts do not travel", name)
	}
	return doc
}

// A checker that finds nothing wrong with anything would pass every plot.
func TestFaultsAreFound(t *testing.T) {
	const text = `<text x="%g" y="10" font-size="10" textLength="%.4g">%s</text>`
	w := float64(textStyle(10, ink, false).Width("word"))
	one := func(x float64) string { return fmt.Sprintf(text, x, w, "word") }
	for name, c := range map[string]struct {
		body string
		want string
	}{
		"apart":    {one(5) + one(5+w+2), ""},
		"overlap":  {one(5) + one(5+w/2), "overlap"},
		"left":     {one(-5), "cut off"},
		"right":    {one(95), "cut off"},
		"moved":    {`<g transform="translate(0, -20)">` + one(5) + `</g>`, "cut off"},
		"turned":   {`<g transform="rotate(-90)">` + one(5) + `</g>`, "cut off"},
		"flipped":  {`<g transform="scale(1, -1) translate(0, -40)">` + one(5) + `</g>` + one(5), ""},
		"together": {`<g transform="scale(1, -1) translate(0, -10)"><g transform="scale(1,-1) translate(0,-10)">` + one(5) + `</g></g>` + one(5), "overlap"},
	} {
		doc := readSVG(t, []byte(`<svg viewBox="0 0 100 50" role="img">`+c.body+`</svg>`))
		got := strings.Join(doc.faults(), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
