package family

import (
	"reflect"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func TestReadNotes(t *testing.T) {
	got := readNotes("# one\n\nasks: one store\n\nForm: hardened\n\nSource: ADR-1, ADR-2\n\n## How\n\n- It reads.\n- " +
		"It writes.\n\n## Use\n\nUse it alone.\n\n# two\n\n## Deviations\n\n- Keys are shorter.\n\n## " +
		"Trouble\n\n|what|\n|---|\n\n## Avoid\n\nNot with two.\n\n# one, two\n\n## Options\n\n- lost: again: it is sent " +
		"again\n")
	both := []quota.Option{{Name: "lost", Doc: "again: it is sent again"}}
	want := map[string]*strategies.Meta{
		"one": {Name: "one", Doc: "asks: one store", Form: strategies.Hardened, About: strategies.About{
			Source: "ADR-1, ADR-2",
			Notes:  strategies.Notes{How: []string{"It reads.", "It writes."}, Use: "Use it alone."},
		}, Options: both},
		"two": {Name: "two", Options: both, About: strategies.About{Notes: strategies.Notes{
			Deviations: []string{"Keys are shorter."}, Trouble: []string{"|what|", "|---|"}, Avoid: "Not with two.",
		}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, wrong := range []string{"# one\ntext\nmore", "# one\nForm: a\n\n## Form\nb", "# one\n## How\nno item",
		"# one\n## Other\n- item", "# one\n## Use\nonce\ntwice"} {
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
