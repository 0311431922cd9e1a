package measure

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestNoteOfTroubleElsewhere: trouble of a store that no strategy uses is no silent success.
func TestNoteOfTroubleElsewhere(t *testing.T) {
	for text, want := range map[string]string{
		"postgres:away@0.3-0.6": "postgres:away@0.3-0.6 has no effect: none of these strategies uses postgres",
		"redis:away@0.3-0.6":    "",
		"limit:is=40@0.5":       "",
	} {
		c := &Config{}
		c.Policy.Window.Kind = quota.Standing
		c.Trouble = trouble.MustParse(text)
		c.Strategies = []strategies.Selection{{Meta: &strategies.Meta{Needs: []strategies.Need{strategies.NeedRedis}}}}
		notes := c.Notes()
		if slices.Contains(notes, want) != (want != "") {
			t.Errorf("%s: %q", text, notes)
		}
	}
}
