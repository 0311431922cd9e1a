package condition

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// SearchFields are the figures of a search: its properties, each with the units by which a schedule breaks it, or 1 if
// it has none, and 0 if no schedule does; the steps of the shortest schedule of all; and how many properties break.
func SearchFields(properties []results.Property) []string {
	return append([]string{string(Counterexamples), string(Steps)}, format.Strings(properties)...)
}

// identifier is a figure's key as an identifier of Go.
func identifier(key string) string { return strings.NewReplacer("-", "_", ".", "_").Replace(key) }

// byIdentifier are the figures by their keys as identifiers.
var byIdentifier = sync.OnceValue(func() map[string]*figures.Figure {
	out := map[string]*figures.Figure{}
	for _, key := range figures.Keys() {
		out[identifier(key)] = figures.Of(key)
	}
	return out
})

// figureOf is the figure with an identifier, or nil.
func figureOf(name string) *figures.Figure { return byIdentifier()[name] }

var (
	// quotes stand around labels, which are kept as they are.
	quotes = regexp.MustCompile(`"[^"]*"`)
	// word is a name, maybe with the - and . of a figure's key.
	word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*`)
	// withUnit is a number with its unit.
	withUnit = regexp.MustCompile(`\b([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|min)\b`)
	// equals is a single =, with what stands before and after it.
	equals = regexp.MustCompile(`([^<>=!])=([^=<>!])`)
)

// spelled is an expression as Go spells it: "=" for equality, "5ms" and keys such as "leak-pct" are spelled otherwise
// there.
func spelled(text string, properties []results.Property) string {
	keys := slices.Concat(figures.Keys(), SearchFields(properties))
	keys = slices.DeleteFunc(keys, func(key string) bool { return identifier(key) == key })
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // p99.99 before p99.9
	var out strings.Builder
	rest := 0
	for _, span := range quotes.FindAllStringIndex(text, -1) {
		out.WriteString(spelledWithin(text[rest:span[0]], keys))
		out.WriteString(text[span[0]:span[1]])
		rest = span[1]
	}
	out.WriteString(spelledWithin(text[rest:], keys))
	return out.String()
}

// spelledWithin does it for a part of the text that has no quotes. Keys are those that are no identifiers.
func spelledWithin(text string, keys []string) string {
	text = word.ReplaceAllStringFunc(text, func(name string) string {
		for _, key := range keys {
			if before, ok := strings.CutSuffix(name, key); ok && (before == "" || strings.HasSuffix(before, ".")) {
				return before + identifier(key)
			}
		}
		return name
	})
	text = withUnit.ReplaceAllString(text, "$1*$2")
	return equals.ReplaceAllString(text, "$1==$2")
}
