package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/results"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// gallery holds a finding of each kind that there is to draw.
func gallery(t *testing.T) map[string]*results.Finding {
	t.Helper()
	out := map[string]*results.Finding{}
	for name, c := range map[string]struct {
		strategy string
		cfg      explore.Config
		property explore.Property
	}{
		"two clients":  {"check-then-set", explore.Config{}, explore.Leak},
		"nine clients": {"check-then-set", explore.Config{Clients: 9, Limit: 1}, explore.Leak},
		"job": {"lua-reserve",
			explore.Config{Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}}},
				Properties: []explore.Property{explore.Leak}}, explore.Leak},
		"crash": {"incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultCrash}}, explore.FalseReject},
		"clock": {"decr-expire", explore.Config{Clients: 1, Limit: 1, Faults: []quota.Fault{quota.FaultClock}},
			explore.TTL},
		"outage":        {"decr-expire", explore.Config{Faults: []quota.Fault{quota.FaultOutage}}, explore.FalseReject},
		"lost reply":    {"incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultLostReply}}, explore.TTL},
		"retry":         {"incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultRetry}}, explore.FalseReject},
		"eviction":      {"incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultEviction}}, explore.Leak},
		"model as well": {"redis-hash", explore.Config{Properties: []explore.Property{explore.Leak}}, explore.Leak},

		"foreign, outage":     {"decr-expire", explore.Config{Faults: []quota.Fault{quota.FaultOutage}}, explore.FalseReject},
		"foreign, lost reply": {"incr-expire", explore.Config{Faults: []quota.Fault{quota.FaultLostReply}}, explore.TTL},
	} {
		chosen := testkit.Strategy(t, c.strategy)
		if strings.HasPrefix(name, "foreign") {
			meta := *chosen.Meta
			meta.Foreign = true
			chosen.Meta = &meta
		}
		c.cfg.Properties = []explore.Property{c.property}
		r, err := explore.Run(t.Context(), chosen, c.cfg)
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
				gap = min(gap, l.value-c.lanes[i-1].value)
			}
			if 2*l.headWidth() > leastLane {
				t.Errorf("%s: the head %q is wider than its lane", name, l.head)
			}
		}
		below := headHeight
		for _, r := range c.rows {
			if r.y < below || r.y+r.height > c.bottom {
				t.Errorf("%s: T%d at %.0f to %.0f overlaps, or ends below %.0f", name, r.step.Number, r.y, r.y+r.height, c.bottom)
			}
			below = r.y + r.height
			if r.kind == markBand {
				continue
			}
			for _, l := range append(r.label, r.answer) {
				if w := float64(utf8.RuneCountInString(l))*monoChar + 2*labelRoom; w > gap {
					t.Errorf("%s: T%d: %q is %.0f wide, lanes are %.0f", name, r.step.Number, l, w, gap)
				}
				if strings.ContainsRune(l, 0) {
					t.Errorf("%s: T%d: %q is not for people", name, r.step.Number, l)
				}
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
		p, err := Sequence(f)
		if err != nil {
			t.Fatal(err)
		}
		checkSVG(t, name, p)
		b, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		dec := xml.NewDecoder(bytes.NewReader(b))
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
