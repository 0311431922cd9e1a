package explore

import "testing"

// TestFull: counts of what ends a search have commas between thousands.
func TestFull(t *testing.T) {
	g := graph{nodes: make([]node, 12_345)}
	for want, c := range map[string]Config{
		"12,345 states": {Bounds: Bounds{MaxStates: 12_345}}, "": {Bounds: Bounds{MaxStates: 12_346, MaxMemory: 1 << 40}},
		"1,024 KiB of memory for 12,345 states": {Bounds: Bounds{MaxStates: 12_346, MaxMemory: 1 << 20}},
	} {
		g.held = c.MaxMemory & (1 << 20)
		if got := g.full(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
