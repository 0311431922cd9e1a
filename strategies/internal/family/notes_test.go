package family

import (
	"reflect"
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

func TestReadNotes(t *testing.T) {
	got := readNotes("# one\n\n## How\n\n- It reads.\n- It writes.\n\n## Use\n\nUse it alone.\n\n# two\n\n## Deviations\n\n- Keys are shorter.\n\n## Trouble\n\n|what|\n|---|\n\n## Avoid\n\nNot with two.\n")
	want := map[string]strategies.Notes{
		"one": {How: []string{"It reads.", "It writes."}, Use: "Use it alone."},
		"two": {Deviations: []string{"Keys are shorter."}, Trouble: []string{"|what|", "|---|"}, Avoid: "Not with two."},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, wrong := range []string{"# one\ntext", "# one\n## How\nno item", "# one\n## Other\n- item", "# one\n## Use\nonce\ntwice"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is read", wrong)
				}
			}()
			readNotes(wrong)
		}()
	}
}
