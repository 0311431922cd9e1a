package document

import "github.com/quotabench/quotabench/results"

// Document is a list of sections, in the order of a reader.
type Document []Section

// Section is a list of blocks that belong together. One without blocks is left out.
type Section []Block

// Block is a [Heading], a [Paragraph], [Entries], a [Table] or a [Schedule].
type Block interface{ block() }

// Heading is what the blocks below it are about.
type Heading struct{ Text string }

// Paragraph is prose.
type Paragraph struct {
	// Head stands before the text, and what does not fit next to it is indented as far.
	Head string
	// Lead is the beginning of the text, marked by Tone.
	Lead string
	// Tone is that of the lead, or of all of it on a page.
	Tone Tone
	Text string
	// Whole paragraphs are never broken into lines, e.g. commands to copy.
	Whole bool
	// Only says which reports have the paragraph. What a brief one says below a table stands in the rows of a full one.
	Only Extent
}

// Entries are texts behind labels.
type Entries struct {
	// Width is how many cells the labels take on a terminal.
	Width int
	// Inline entries are one sentence where lines are not rows of a screen.
	Inline bool
	List   []Entry
}

// Entry is what is said about one thing.
type Entry struct {
	// Label is empty if the entry continues the one before.
	Label string
	// Text is one line.
	Text string
}

// Schedule is what a search found, step by step.
type Schedule struct {
	Finding *results.Finding
	// Title says what it is; nil if that stands above it, and how to repeat it with it.
	Title *Paragraph
	// Odds say how often random schedules met it; empty if none was run.
	Odds string
	// Same is the property that the same schedule breaks above; empty for none.
	Same results.Property
	// Harmless schedules break no property.
	Harmless bool
}

func (*Heading) block()   {}
func (*Paragraph) block() {}
func (*Entries) block()   {}
func (*Table) block()     {}
func (*Schedule) block()  {}

// Tone is what a text means for a reader.
type Tone int

// The tones.
const (
	Neutral Tone = iota
	Minor        // of what is no candidate
	Good
	Caution
	Bad
)

// Section appends a section, unless it has no block.
func (d *Document) Section(blocks ...Block) {
	if len(blocks) > 0 {
		*d = append(*d, blocks)
	}
}

// To is what a report of an extent has of the document.
func (d Document) To(extent Extent) (out Document) {
	for _, section := range d {
		out.Section(section.To(extent)...)
	}
	return out
}

// To is what a report of an extent has of the section.
func (s Section) To(extent Extent) (out Section) {
	for _, block := range s {
		switch block := block.(type) {
		case *Paragraph:
			if block.Only.in(extent) {
				out = append(out, block)
			}
		case *Table:
			if block.Only.in(extent) {
				out = append(out, block.To(extent))
			}
		default:
			out = append(out, block)
		}
	}
	return out
}

// Text is a section of prose, with a paragraph for each text.
func Text(texts ...string) (out Section) {
	for _, text := range texts {
		out = append(out, &Paragraph{Text: text})
	}
	return out
}
