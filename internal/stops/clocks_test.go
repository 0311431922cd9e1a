package stops

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/quotabench/quotabench/internal/testenv"
)

// TestClocks reads clocks that are wrong always, and from a moment on, and refuses what says of none how wrong it is.
func TestClocks(t *testing.T) {
	const s = time.Second
	got, err := Clocks([]string{"0s", "2s", "-1.5s@0.25"}, 8*s, 3)
	if want := []Clock{{}, {Ahead: 2 * s}, {Ahead: -1500 * time.Millisecond, From: 2 * s}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := Clocks([]string{"8784h", "-8784h"}, s, 2); err != nil || got[1].Ahead != -366*24*s*3600 {
		t.Errorf("366 days: %v, %v", got, err)
	}
	if got, err := Clocks([]string{"2s"}, 0, 1); err != nil || got[0] != (Clock{Ahead: 2 * s}) {
		t.Errorf("without a duration: %v, %v", got, err)
	}
	for _, text := range []string{"", "2", "@0.5", "2s@", "2s@0", "2s@1", "2s@-0.5", "2s@NaN", "2s@half", "2s@0.5@0.6", "8784h1ns", time.Duration(math.MinInt64).String()} {
		if _, err := Clocks([]string{"0s", text}, 8*s, 2); err == nil || !strings.Contains(err.Error(), "give a time") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Clocks([]string{"2s@0.5"}, 0, 1); err == nil || !strings.Contains(err.Error(), "needs a duration") {
		t.Errorf("a share of no duration: %v", err)
	}
	if _, err := Clocks([]string{"0s", "0s", "2s"}, s, 2); err == nil || !strings.Contains(err.Error(), "there are 2") {
		t.Errorf("a clock too many: %v", err)
	}
}
