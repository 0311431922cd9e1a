package explore

import (
	"bytes"
	"encoding/xml"
	"errors"
	"github.com/quotabench/quotabench/quota"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quotabench/quotabench/strategies"
)

// gallery holds a finding of each kind that there is to draw.
func gallery(t *testing.T) map[string]*Finding {
	t.Helper()
	out := map[string]*Finding{}
	for name, c := range map[string]struct {
		strategy string
		cfg      Config
		property Property
	}{
		"two clients":   {"check-then-set", Config{}, Leak},
		"nine clients":  {"check-then-set", Config{Clients: 9, Limit: 1}, Leak},
		"job":           {"lua-reserve", Config{Scripts: []Script{{{Kind: Take, Units: 1}}}, Properties: []Property{Leak}}, Leak},
		"crash":         {"incr-expire", Config{Faults: []quota.Fault{quota.FaultCrash}}, FalseReject},
		"clock":         {"decr-expire", Config{Clients: 1, Limit: 1, Faults: []quota.Fault{quota.FaultClock}}, TTL},
		"outage":        {"decr-expire", Config{Faults: []quota.Fault{quota.FaultOutage}}, FalseReject},
		"lost reply":    {"incr-expire", Config{Faults: []quota.Fault{quota.FaultLostReply}}, TTL},
		"retry":         {"incr-expire", Config{Faults: []quota.Fault{quota.FaultRetry}}, FalseReject},
		"eviction":      {"incr-expire", Config{Faults: []quota.Fault{quota.FaultEviction}}, Leak},
		"model as well": {"redis-hash", Config{Properties: []Property{Leak}}, Leak},
	} {
		chosen, err := strategies.Parse(c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		c.cfg.Properties = []Property{c.property}
		r, err := Run(t.Context(), chosen[0], c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Found(c.property)
		if f == nil {
			t.Fatalf("%s: no %s found", name, c.property)
		}
		out[name] = f
	}
	return out
}

// Nothing in a chart overlaps or is cut off.
func TestChartsHaveRoomForAll(t *testing.T) {
	for name, f := range gallery(t) {
		c := layOut(f)
		gap := c.width
		for i, l := range c.lanes {
			if i > 0 {
				gap = min(gap, l.x-c.lanes[i-1].x)
			}
			for _, h := range l.head {
				if w := float64(len(h))*7.9 + 24; w > leastLane {
					t.Errorf("%s: the head %q is wider than its lane", name, h)
				}
			}
		}
		below := c.top + headHeight
		for _, r := range c.rows {
			if r.y < below || r.y+r.height > c.bottom {
				t.Errorf("%s: T%d at %.0f to %.0f overlaps, or ends below %.0f", name, r.step.Number, r.y, r.y+r.height, c.bottom)
			}
			below = r.y + r.height
			if r.kind == markBand {
				continue
			}
			for _, l := range append(r.label, r.answer) {
				if w := float64(utf8.RuneCountInString(l))*monoChar + 2*labelGap; w > gap {
					t.Errorf("%s: T%d: %q is %.0f wide, lanes are %.0f", name, r.step.Number, l, w, gap)
				}
				if strings.Contains(l, glue) {
					t.Errorf("%s: T%d: %q is not for people", name, r.step.Number, l)
				}
			}
		}
		for _, l := range c.title {
			if w := float64(len(l)) * 10.1; w > c.width-32 {
				t.Errorf("%s: the title %q is cut off", name, l)
			}
		}
		for _, s := range c.busy {
			if s.to <= s.from {
				t.Errorf("%s: a call lasts from %.0f to %.0f", name, s.from, s.to)
			}
		}
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	for name, f := range gallery(t) {
		f.Detail += ` <&">`
		var b bytes.Buffer
		if err := WriteSVG(&b, f); err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(&b)
		numbers := 0
		for {
			tok, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if text, ok := tok.(xml.CharData); ok && strings.HasPrefix(string(text), "T") && len(text) <= 3 {
				numbers++
			}
		}
		if numbers != len(f.Steps) {
			t.Errorf("%s: %d of %d steps are drawn", name, numbers, len(f.Steps))
		}
	}
}

func TestTimelinesFitTheScreen(t *testing.T) {
	for name, f := range gallery(t) {
		var b bytes.Buffer
		if err := WriteTimeline(&b, f); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > timelineWidth {
				t.Errorf("%s: %d characters: %s", name, n, line)
			}
			if strings.Contains(line, glue) || strings.HasSuffix(strings.TrimRight(line, "\n"), " ") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		wanted []int
		room   int
		want   []int
	}{
		{[]int{5, 5}, 20, []int{5, 5}},
		{[]int{50, 5}, 20, []int{15, 5}},
		{[]int{50, 5, 50}, 25, []int{10, 5, 10}},
		{[]int{9}, 4, []int{4}},
	} {
		got := share(c.wanted, c.room)
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%v in %d: %v, want %v", c.wanted, c.room, got, c.want)
				break
			}
		}
	}
}
