package doctest

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// name is what Go code calls something.
type name struct {
	// kind is "type", "func", "package" or "JSON key".
	kind, text string
}

// term is a word, or a few, of the table of docs/glossary.md with the folders whose names may have it.
type term struct {
	words   []string
	folders []string
}

// glossary is what docs/glossary.md says of names.
type glossary struct {
	// terms are those of several words first.
	terms []term
	// gone are words that come back in no name, with what to write.
	gone map[string]string
}

// TestNamesKeepTheGlossary: a word that names one thing in the code names it in the folders that docs/glossary.md
// lists, and a word that is gone does not come back.
func TestNamesKeepTheGlossary(t *testing.T) {
	words := readGlossary(t)
	const planted = `package strikes
type requestAudit struct {
	A int ` + "`json:\"first_audit\"`" + `
}
func readAudits() {}
func auditAll() {} // a verb
`
	if wrong := words.wrong("workloads", namesIn(t, "planted.go", planted), nil); len(wrong) != 4 {
		t.Errorf("of four planted names, %q are found", wrong)
	}
	met := map[string]bool{}
	for _, file := range tracked(t, "*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, wrong := range words.wrong(path.Dir(file), namesIn(t, filepath.Join(root, file), nil), met) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
	for _, term := range words.terms {
		for _, folder := range term.folders {
			if word := strings.Join(term.words, " "); !met[word+" "+folder] {
				t.Errorf("docs/glossary.md lists %s for %q, and no name there has it", folder, word)
			}
		}
	}
}

// readGlossary reads the tables about names in docs/glossary.md.
func readGlossary(t *testing.T) glossary {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := glossary{gone: map[string]string{}}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, cells := range tableBelow(string(text), "## In the code", 3) {
		term := term{words: strings.Fields(cells[0])}
		for _, folder := range quoted.FindAllStringSubmatch(cells[2], -1) {
			term.folders = append(term.folders, folder[1])
		}
		words.terms = append(words.terms, term)
	}
	for _, cells := range tableBelow(string(text), "## Gone", 2) {
		words.gone[cells[0]] = cells[1]
	}
	if len(words.terms) < 5 || len(words.gone) == 0 {
		t.Fatalf("docs/glossary.md has %d terms of the code and %d words that are gone", len(words.terms), len(words.gone))
	}
	slices.SortStableFunc(words.terms, func(a, b term) int { return len(b.words) - len(a.words) })
	return words
}

// tableBelow has the cells of each row of the table below a heading.
func tableBelow(page, heading string, columns int) (rows [][]string) {
	_, section, _ := strings.Cut(page, heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	head := true
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != columns {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !head && !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
		head = false
	}
	return rows
}

// namesIn are the names that a file declares.
func namesIn(t *testing.T, file string, source any) (names []name) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, name{"package", parsed.Name.Name})
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names = append(names, name{"func", node.Name.Name})
		case *ast.TypeSpec:
			names = append(names, name{"type", node.Name.Name})
		case *ast.Field:
			if node.Tag != nil {
				tag, _ := strconv.Unquote(node.Tag.Value)
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				names = append(names, name{"JSON key", key})
			}
		}
		return true
	})
	return names
}

// wrong says which names of a folder the glossary does not allow. What it allows is added to met.
func (g *glossary) wrong(folder string, names []name, met map[string]bool) (out []string) {
	for _, name := range names {
		parts := partsOf(name)
		for i, part := range parts {
			for gone, write := range g.gone {
				if singular(part) == singular(gone) {
					out = append(out, "the "+name.kind+" "+name.text+" has the word "+gone+", which is gone: write "+write)
				}
			}
			for _, term := range g.terms {
				if !begins(parts[i:], term.words) {
					continue
				}
				word := strings.Join(term.words, " ")
				at := slices.IndexFunc(term.folders, func(above string) bool { return within(folder, above) })
				if at < 0 {
					folders := cmp.Or(strings.Join(term.folders, ", "), "no folder")
					out = append(out, "the "+name.kind+" "+name.text+" has the word "+word+", which docs/glossary.md gives to "+
						folders+": choose another word, or say there what it means here")
				} else if met != nil {
					met[word+" "+term.folders[at]] = true
				}
				for j := range term.words {
					parts[i+j] = "" // it is no part of a shorter term
				}
			}
		}
	}
	return out
}

// within reports whether a folder is another one or below it.
func within(folder, above string) bool {
	return folder == above || strings.HasPrefix(folder, above+"/")
}

// begins reports whether parts of a name begin with the words of a term.
func begins(parts, words []string) bool {
	if len(parts) < len(words) {
		return false
	}
	for i, word := range words {
		if parts[i] != word && singular(parts[i]) != word {
			return false
		}
	}
	return true
}

// capital begins a part of a name in mixed caps.
var capital = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// partsOf are the words of a name. A function's first word is a verb, and left out.
func partsOf(name name) []string {
	parts := capital.FindAllString(name.text, -1)
	for i := range parts {
		parts[i] = strings.ToLower(parts[i])
	}
	if name.kind == "func" && len(parts) > 0 {
		return parts[1:]
	}
	return parts
}

func singular(word string) string { return strings.TrimSuffix(word, "s") }
