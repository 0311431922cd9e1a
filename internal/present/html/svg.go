package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
)

// svgElements may stand in a page. Everything else is left out with its content.
var svgElements = []string{
	"circle", "clipPath", "defs", "desc", "ellipse", "g", "line", "linearGradient", "marker", "path", "pattern", "polygon", "polyline",
	"rect", "stop",
	"svg", "text", "title", "tspan", "use",
}

// svgTexts are the elements whose text is shown or read out.
var svgTexts = []string{"desc", "text", "title", "tspan"}

// svgAttribute are the attributes of these elements: geometry and paint.
var svgAttribute = regexp.MustCompile(`^(class|id|role|style|d|points|transform|viewBox|opacity|offset|orient|rotate|paint-order|` +
	`clip-path|clip-rule|dominant-baseline|` +
	`textLength|lengthAdjust|preserveAspectRatio|[cdfr]?[xyr][12]?|d[xy]|ref[XY]|width|height|fill|` +
	`(aria|fill|font|marker|stroke|stop|text)-[a-z-]+|stroke|` +
	`marker(Width|Height|Units)|gradient(Units|Transform)|pattern(Units|Transform|ContentUnits)|clipPathUnits)$`)

var (
	urlOf   = regexp.MustCompile(`url\(\s*['"]?([^'")]*)['"]?\s*\)`)
	lengthX = regexp.MustCompile(`^([0-9.]+)(px|pt)?$`)
)

// drawn is an SVG document as an element of a page.
type drawn struct {
	// SVG is the element. Its ids and references to them begin with a prefix.
	SVG template.HTML
	// Title and Desc are what the document says of itself.
	Title, Desc string
	// Width in pixels of the page; 0 where the document does not say.
	Width float64
}

// inline makes an SVG document an element of a page. Known elements and attributes
// pass, references to what is not in the document do not.
func inline(svg []byte, prefix string) (drawn, error) {
	d := xml.NewDecoder(strings.NewReader(charsOfXML(format.Visible(string(svg)))))
	w := inliner{prefix: prefix}
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return drawn{}, fmt.Errorf("read a drawing: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if len(w.open) == 0 && t.Name.Local == "svg" {
				w.root(t)
			} else if len(w.open) == 0 || !slices.Contains(svgElements, t.Name.Local) {
				if err := d.Skip(); err != nil {
					return drawn{}, fmt.Errorf("read a drawing: %w", err)
				}
			} else if len(w.open) == 1 && (t.Name.Local == "title" || t.Name.Local == "desc") {
				// What the whole is stands beside it. As an element it would follow the pointer.
				var text string
				if err := d.DecodeElement(&text, &t); err != nil {
					return drawn{}, fmt.Errorf("read a drawing: %w", err)
				}
				if t.Name.Local == "title" {
					w.out.Title = text
				} else {
					w.out.Desc = text
				}
			} else {
				w.start(t)
			}
		case xml.EndElement:
			w.open = w.open[:len(w.open)-1]
			w.b.WriteString("</" + t.Name.Local + ">")
		case xml.CharData:
			if n := len(w.open); n > 0 && slices.Contains(svgTexts, w.open[n-1]) {
				w.b.WriteString(template.HTMLEscapeString(string(t)))
			}
		}
	}
	if w.b.Len() == 0 {
		return drawn{}, errors.New("read a drawing: it has no svg element")
	}
	label := fmt.Sprintf(`<svg role="img" aria-label="%s"`, template.HTMLEscapeString(w.out.Title))
	w.out.SVG = template.HTML(label + w.b.String()) //nolint:gosec // all of it was checked or escaped above
	return w.out, nil
}

// inliner writes the checked elements of a document.
type inliner struct {
	prefix string
	b      bytes.Buffer
	open   []string
	out    drawn
}

// root is the svg element itself, whose start is written at the end.
func (w *inliner) root(t xml.StartElement) {
	w.open = append(w.open, "svg")
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "viewBox":
			w.attribute(a)
		case "width":
			w.out.Width = pixels(a.Value)
		case "font-family", "font-size":
			w.attribute(a)
		}
	}
	w.b.WriteString(">")
}

// pixels is a length in pixels; 0 where it is none.
func pixels(length string) float64 {
	m := lengthX.FindStringSubmatch(length)
	if m == nil {
		return 0
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	if m[2] == "pt" {
		x *= 4.0 / 3
	}
	return x
}

func (w *inliner) start(t xml.StartElement) {
	w.open = append(w.open, t.Name.Local)
	w.b.WriteString("<" + t.Name.Local)
	for _, a := range t.Attr {
		w.attribute(a)
	}
	w.b.WriteString(">")
}

func (w *inliner) attribute(a xml.Attr) {
	name, value := a.Name.Local, a.Value
	switch {
	case name == "href":
		if !strings.HasPrefix(value, "#") {
			return
		}
		value = "#" + w.prefix + value[1:]
	case a.Name.Space != "" || !svgAttribute.MatchString(name):
		return
	case name == "id":
		value = w.prefix + value
	case name == "aria-labelledby" || name == "aria-describedby":
		var ids []string
		for id := range strings.FieldsSeq(value) {
			ids = append(ids, w.prefix+id)
		}
		value = strings.Join(ids, " ")
	default:
		value = urlOf.ReplaceAllStringFunc(value, func(u string) string {
			if ref := urlOf.FindStringSubmatch(u)[1]; strings.HasPrefix(ref, "#") {
				return "url(#" + w.prefix + ref[1:] + ")"
			}
			return "none"
		})
	}
	fmt.Fprintf(&w.b, ` %s="%s"`, name, template.HTMLEscapeString(value))
}

// charsOfXML replaces characters that no XML document may hold.
func charsOfXML(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF || r < 0x20 && r != '\t' && r != '\n' && r != '\r' {
			return '\uFFFD'
		}
		return r
	}, s)
}
