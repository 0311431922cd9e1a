package workloads

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// delimited is the shape of text in columns. Its first line names them, or else they have numbers.
type delimited struct {
	separator rune
	header    int // the number of its line; 0 without one
	names     []string
	columns   map[string]int
	regular   bool // half of the rows, or more, have as many columns as the first line
}

// separators of columns. The one that gives most columns is in use.
const separators = ",;\t|"

// columnName is what a header can hold: it tells a header from the text of a log.
var columnName = regexp.MustCompile(`^[\pL\pN_ .@()/$#%*-]{0,64}$`)

func (d *delimited) begin(head []line) bool {
	first := head[0]
	var texts []string
	for _, separator := range separators {
		cut, damage := fields(first.text, separator)
		if damage == "" && len(cut) > len(texts) {
			d.separator = separator
			texts = cut
		}
	}
	if len(texts) < 2 {
		return false
	}
	d.header = first.number
	if _, moments := likeliest(texts); moments > 0 { // it is a row
		d.header = 0
		for i := range texts {
			texts[i] = strconv.Itoa(i + 1)
		}
	}
	for _, text := range texts {
		if !columnName.MatchString(strings.TrimSpace(text)) {
			return false
		}
	}
	d.learn(texts)
	alike := 0
	for _, line := range head {
		if _, damage := d.split(line.text); damage == "" {
			alike++
		}
	}
	d.regular = 2*alike >= len(head)
	return true
}

// learn takes the names of the columns. Of columns with one name the first counts.
func (d *delimited) learn(texts []string) {
	d.names = nil
	d.columns = map[string]int{}
	for i, text := range texts {
		name := strings.TrimSpace(text)
		d.names = append(d.names, name)
		if _, again := d.columns[name]; !again {
			d.columns[name] = i
		}
	}
}

func (d *delimited) fields() []string { return d.names }

func (d *delimited) ordered() bool { return true }

func (d *delimited) evident() bool { return d.regular }

func (d *delimited) isRow(l line) bool { return l.number != d.header }

func (d *delimited) split(text string) (values, string) {
	texts, damage := fields(text, d.separator)
	return d.row(texts, damage)
}

// row compares the length of a row with the header's.
func (d *delimited) row(texts []string, damage string) (values, string) {
	if damage == "" && len(texts) != len(d.names) {
		damage = fmt.Sprintf("%d fields instead of %d", len(texts), len(d.names))
	}
	return cells{columns: d.columns, texts: texts}, damage
}

// fields splits a line. If its quotation marks do not match they are taken as
// they stand, and damage says so.
func fields(text string, separator rune) (cells []string, damage string) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, string(separator)), ""
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma = separator
	reader.FieldsPerRecord = -1
	if cells, err := reader.Read(); err == nil {
		return cells, ""
	}
	return strings.Split(text, string(separator)), "quotation marks do not match"
}

// extended is the W3C extended log format. Lines that begin with # are no rows, and one of them names the columns.
type extended struct{ delimited }

const extendedHeader = "#Fields:"

func (e *extended) begin(head []line) bool {
	for _, line := range head {
		if e.isRow(line) {
			break
		}
	}
	return e.evident()
}

func (e *extended) evident() bool { return len(e.names) > 0 }

// isRow learns the columns from each header: they can change in the middle of a file.
func (e *extended) isRow(l line) bool {
	if names, found := strings.CutPrefix(l.text, extendedHeader); found {
		e.learn(strings.Fields(names))
	}
	return !strings.HasPrefix(l.text, "#")
}

func (e *extended) split(text string) (values, string) {
	if strings.Contains(text, "\t") {
		return e.row(strings.Split(text, "\t"), "")
	}
	return e.row(strings.Fields(text), "")
}
