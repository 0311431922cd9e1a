package layout

// Page is what a text is laid out for. Its zero value is a file: [Width] cells, and
// no colour.
type Page struct {
	// Width in cells; 0 means [Width].
	Width int
	// Colour marks what matters for a terminal.
	Colour bool
}

// Cells is the width in cells.
func (p Page) Cells() int {
	if p.Width == 0 {
		return Width
	}
	return p.Width
}

// Wrap breaks a text into lines; see [Wrap].
func (p Page) Wrap(text string) []string { return Wrap(text, p.Cells()) }

// Title is the heading of a table.
func (p Page) Title(text string) []string { return Wrap(text, p.Cells()) }

// Paragraph wraps text under a heading; see [Paragraph].
func (p Page) Paragraph(head, text string) []string { return Paragraph(head, text, p.Cells()) }

// Table renders a grid.
func (p Page) Table(g *Grid) []string { return g.Lines(p.Cells()) }
