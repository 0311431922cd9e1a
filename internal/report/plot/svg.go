package plot

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html"
	"regexp"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The fonts that an SVG document asks for. Those after the first have the metrics of
// the one that the layout was computed with, or nearly.
const (
	sansStack = "Liberation Sans,Arimo,Arial,Helvetica,sans-serif"
	monoStack = "Liberation Mono,Cousine,Courier New,Menlo,monospace"
)

// SVG renders the plot as a stand-alone SVG document, which may also stand in an HTML
// page next to others: its identifiers are its own. Every text states the width that
// it was laid out with, so that no font makes labels overlap.
func (p *Plot) SVG() ([]byte, error) {
	body, err := p.body()
	if err != nil {
		return nil, err
	}
	hash64 := fnv.New64a()
	fmt.Fprint(hash64, p.title, p.desc, body) // never fails
	id := fmt.Sprintf("qb%x", hash64.Sum64())
	const document = `<svg width="%gpt" height="%gpt" xmlns="http://www.w3.org/2000/svg"` +
		` aria-labelledby="%[3]s-title %[3]s-desc"%s>
<title id="%[3]s-title">%[5]s</title>
<desc id="%[3]s-desc">%[6]s</desc>
%[7]s`
	title := html.EscapeString(p.title)
	desc := html.EscapeString(p.desc)
	return fmt.Appendf(nil, document, round2(p.width), round2(p.height), id, p.attributes(), title, desc, body), nil
}

// Element renders the plot for an HTML page that shows its title and what describes it,
// and returns its width in pixels. All text in it is escaped.
func (p *Plot) Element() (svg string, width float64, err error) {
	body, err := p.body()
	svg = fmt.Sprintf(`<svg aria-label="%s"%s>%s`, html.EscapeString(p.title), p.attributes(), body)
	return svg, float64(p.width) * 4 / 3, err
}

func (p *Plot) attributes() string {
	return fmt.Sprintf(` viewBox="0 0 %g %g" role="img" font-family="%s"`, round2(p.width), round2(p.height), sansStack)
}

// body is what comes after the start of the svg element.
func (p *Plot) body() (string, error) {
	canvas := vgsvg.New(p.width, p.height)
	dc := draw.New(canvas)
	p.ground(dc)
	p.paint(dc)
	var buffer bytes.Buffer
	if _, err := canvas.WriteTo(&buffer); err != nil {
		return "", fmt.Errorf("render svg: %w", err)
	}
	_, text, _ := strings.Cut(buffer.String(), "<svg")
	_, text, _ = strings.Cut(text, ">")
	return strings.TrimLeft(canvasText.ReplaceAllStringFunc(text, compactText), "\n"), nil
}

func round2(length font.Length) float64 { return float64(int64(length*100+0.5)) / 100 }

// canvasText is a text as the canvas writes it.
var canvasText = regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)" transform="scale\(1, -1\)"` +
	`\n\tstyle="font-family:([^;]*);font-variant:normal;` +
	`font-weight:(normal|bold);font-style:normal;font-size:([0-9.]+)px(;fill:#[0-9A-Fa-f]+)?">([^<]*)</text>`)

// compactText states a text's width, and leaves out what the document says once.
func compactText(text string) string {
	texts := canvasText.FindStringSubmatch(text)
	size, err := strconv.ParseFloat(texts[5], 64)
	if err != nil {
		return text // the pattern admits numbers alone
	}
	style := textStyle(size, ink, texts[4] == "bold")
	attributes := ""
	if texts[4] == "bold" {
		attributes += ` font-weight="bold"`
	}
	if texts[3] == monoFamily {
		style.Font = monoFont(size)
		attributes += ` font-family="` + monoStack + `"`
	}
	if _, colour, ok := strings.Cut(texts[6], ":"); ok {
		attributes += ` fill="` + colour + `"`
	}
	width := style.Width(html.UnescapeString(texts[7]))
	return fmt.Sprintf(`<text x="%s" y="%s" transform="scale(1,-1)" font-size="%s" `+
		`textLength="%.4g" lengthAdjust="spacingAndGlyphs"%s>%s</text>`,
		texts[1], texts[2], texts[5], float64(width), attributes, texts[7])
}

// monoFamily is the family name in the monospaced font.
const monoFamily = "Liberation Mono"

// monoFont is the font of commands, at a size in points.
func monoFont(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Mono", Weight: xfont.WeightNormal, Size: font.Length(size)}
}
