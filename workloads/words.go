package workloads

import (
	"strconv"
	"strings"
)

// element is one field of a line of words.
type element struct {
	name string
	mark byte // opens it: a bracket or a quotation mark, 0 for a bare word
	// number elements hold digits, or a dash for none.
	number bool
	// address elements end in a port, which is left out.
	address bool
	// spacious elements are bare and may hold spaces.
	spacious bool
}

// words is the shape of lines with spaces between their fields. Fields in brackets or quotation marks may hold spaces.
// Fields can be named by their numbers as well, and those after the last element can only be.
type words struct {
	elements []element
	// needed is how many elements a whole line has at least.
	needed  int
	columns map[string]int
	names   []string
}

// newWords reads the elements as a log format writes them: name, [name], "name", #name for a number, name:port for an
// address, and name* for what may hold spaces. After a question mark come those that a line may lack.
func newWords(format string) *words {
	shape := &words{columns: map[string]int{}, needed: -1}
	for text := range strings.FieldsSeq(format) {
		if text == "?" {
			shape.needed = len(shape.elements)
			continue
		}
		next := element{}
		switch text[0] {
		case '[', '"':
			next.mark = text[0]
		case '#':
			next.number = true
		}
		text, next.address = strings.CutSuffix(text, ":port")
		text, next.spacious = strings.CutSuffix(text, "*")
		next.name = strings.Trim(text, `[]"#`)
		shape.columns[next.name] = len(shape.elements)
		shape.names = append(shape.names, next.name)
		shape.elements = append(shape.elements, next)
	}
	if shape.needed < 0 {
		shape.needed = len(shape.elements)
	}
	return shape
}

// begin counts the fields after the last element. Any line consists of words.
func (w *words) begin(head []line) bool {
	for _, line := range head {
		texts, damage := w.cut(line.text)
		if damage != "" {
			continue
		}
		for i := len(w.names); i < len(texts); i++ {
			number := strconv.Itoa(i + 1)
			w.columns[number] = i
			w.names = append(w.names, number)
		}
	}
	return true
}

func (w *words) fields() []string { return w.names }

func (w *words) ordered() bool { return true }

func (w *words) evident() bool { return false }

func (w *words) isRow(line) bool { return true }

func (w *words) split(text string) (values, string) {
	texts, damage := w.cut(text)
	return cells{columns: w.columns, texts: texts}, damage
}

// cut returns the fields up to the first that is not as expected, and what is wrong. A bare word that no field is for
// belongs to a spacious one before it.
func (w *words) cut(text string) (texts []string, damage string) {
	rest := strings.Trim(text, " ")
	texts = make([]string, 0, len(w.names))
	for i, expected := range w.elements {
		if rest == "" && i == w.needed {
			return texts, damage
		}
		word, after := nextWord(rest)
		for word.bare() && after != "" && expected.mark == '[' && i > 0 && w.elements[i-1].spacious {
			texts[i-1] += " " + word.text
			word, after = nextWord(after)
		}
		if rest == "" || word.mark != expected.mark {
			return texts, joined(damage, "no "+expected.name)
		}
		switch {
		case word.open:
			damage = joined(damage, "unterminated "+expected.name)
		case expected.number && word.text != "-" && !digits(word.text):
			damage = joined(damage, expected.name+" is not a number")
		case expected.address:
			word.text = withoutPort(word.text)
		}
		texts = append(texts, word.text)
		rest = after
	}
	for rest != "" {
		word, after := nextWord(rest)
		texts = append(texts, word.text)
		rest = after
	}
	return texts, damage
}

// joined adds to a description of damage.
func joined(damage, more string) string {
	if damage == "" {
		return more
	}
	return damage + "; " + more
}

// withoutPort leaves the host of an address. An IPv6 address need not be in brackets.
func withoutPort(address string) string {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 || !digits(address[colon+1:]) {
		return address
	}
	return strings.Trim(address[:colon], "[]")
}

// word is a field of a line as it stands there.
type word struct {
	text string // without what surrounds it
	mark byte   // as in [element]
	open bool   // the line ends before the closing mark
}

func (w word) bare() bool { return w.mark == 0 }

// closing marks by the opening ones.
var closing = map[byte]byte{'"': '"', '[': ']', '{': '}'}

// nextWord cuts the first word off. A bare word that ends in a comma goes on in the next one, as a list of addresses
// does.
func nextWord(text string) (next word, rest string) {
	if text == "" {
		return word{}, ""
	}
	if end, marked := closing[text[0]]; marked {
		length := closedAt(text, end)
		switch {
		case length < 0 && text[0] != '{':
			return word{text: text[1:], mark: text[0], open: true}, ""
		case length > 0 && (length == len(text) || text[length] == ' '):
			return word{text: text[1 : length-1], mark: text[0]}, strings.TrimLeft(text[length:], " ")
		}
	}
	length := 0
	for length < len(text) && (text[length] != ' ' || text[length-1] == ',') {
		length++
	}
	return word{text: text[:length]}, strings.TrimLeft(text[length:], " ")
}

// closedAt is the length of the text up to its closing mark, or -1 without one. A backslash escapes a quotation mark.
func closedAt(text string, end byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && end == '"':
			i++
		case text[i] == end:
			return i + 1
		}
	}
	return -1
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
