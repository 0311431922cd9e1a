package yamlfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestNested(t *testing.T) {
	for text, line := range map[string]int{
		"a: 1\n" + strings.Repeat("[", maxDepth): 0, "a: 1\n" + strings.Repeat("{", maxDepth+1): 2,
		strings.Repeat("[]", 200): 0, strings.Repeat("- ", maxDepth) + "x": 0, strings.Repeat("- ", maxDepth+1) + "x": 1,
		strings.Repeat("!a ", maxDepth+1) + "x": 1, strings.Repeat(" ", maxIndent+1) + "x": 1,
	} {
		if got := nested([]byte(text)); got != line {
			t.Errorf("%.20q: line %d, want %d", text, got, line)
		}
	}
}

// bomb has levels of mappings, each of which has what the one before it has, nine times.
func bomb(levels int, value string) string {
	text := "a0: &a0 {k: v}\n"
	for i := range levels {
		again := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", ")
		text += fmt.Sprintf("a%d: &a%[1]d %s\n", i+1, fmt.Sprintf(value, again))
	}
	return text
}

const (
	merged = "{<<: [%s]}"
	listed = "[%s]"
)

// A text that stands for more values than there is room for is refused before they are made, whichever way its aliases
// are used. A few aliases are taken.
func TestAliases(t *testing.T) {
	for _, form := range []string{merged, listed} {
		for _, levels := range []int{6, 12, 40} {
			_, err := Parse("f.yaml", []byte(bomb(levels, form)))
			if err == nil || !strings.Contains(err.Error(), "its aliases stand for more than 100000 values") {
				t.Errorf("%d levels of %s: %v", levels, form, err)
			}
		}
		var into map[string]any
		if err := Decode("f.yaml", []byte(bomb(2, form)), &into); err != nil || len(into) != 3 {
			t.Errorf("two levels of %s: %v, %v", form, into, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n---\na: 2\n": "f.yaml:3: a second document begins: give one",
		"a: 1\nb: 2\n":      "f.yaml:2: unknown field",
		"a: [1\n":           "f.yaml:1: not valid YAML: ",
		"a: &x [*x]\n":      "f.yaml:1: ",
	} {
		var into struct {
			A int `yaml:"a"`
		}
		if err := Decode("f.yaml", []byte(text), &into); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "a: 1", bomb(3, merged), bomb(12, merged), bomb(12, listed), "a: &x [*x]", "a: *x", "<<: *a", "&a &b c",
		"? [a, b]\n: c", "!!binary x", "a: .nan", "- - -", "a: &a\n  b: *a",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > testenv.Pick(1<<12, 1<<16) {
			t.Skip("too long")
		}
		var into any
		if err := Decode("f.yaml", data, &into); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is no line", err)
		}
	})
}
