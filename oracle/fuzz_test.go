package oracle

import (
	"testing"
)

// FuzzJudge reads a small history from bytes and compares the verdict with
// that of trying everything.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0x00, 3, 4, 1, 0x01, 5, 6, 1})
	f.Add([]byte{1, 1, 1, 0x00, 3, 9, 2, 0x02, 1, 3, 0, 0x00, 14, 2, 1})
	f.Add([]byte{3, 2, 0, 0x00, 8, 20, 3, 0x02, 0, 3, 0, 0x42, 14, 2, 1, 0x01, 30, 3, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 3 {
			return
		}
		limit := int64(data[0] % 6)
		initial := int64(data[1] % 6)
		windows := data[2]%2 == 1
		ops := decode(data[3:])
		cfg := standingConfig(limit, initial)
		if windows {
			cfg = tumblingConfig(limit, initial)
		}
		v := Judge(cfg, events(ops))
		got := figures(v)
		want := try(ops, limit, initial, windows)
		if !hasTakes(ops) {
			return
		}
		if !got.within(want) {
			t.Fatalf("limit %d, initial %d, windows %v:\n got %+v\nwant %+v%s", limit, initial, windows, got, want, explain(ops))
		}
		if v.Issued.Requests != v.Admitted.Requests+v.Rejected.Requests+v.Failed.Requests || v.Malformed != 0 {
			t.Fatalf("counts do not add up: %+v", v)
		}
	})
}

// decode makes at most five operations of four bytes each.
func decode(data []byte) []operation {
	var ops []operation
	back := map[int]bool{}
	for len(data) >= 4 && len(ops) < 5 {
		o := operation{of: -1}
		o.Call = int64(data[1] % 40)
		o.Reply = o.Call + int64(data[2]%16)
		o.Units = int64(data[3] % 4)
		o.Outcome = Outcome(data[0] % 2)
		if data[0]&2 != 0 && len(ops) > 0 {
			i := int(data[1]) % len(ops)
			if ops[i].admitted() && !back[i] {
				back[i] = true
				o.of = i
				o.Kind = Refund
				o.Outcome = Admitted
				o.Units = ops[i].Units
				o.Call = ops[i].Reply + int64(data[2]%8)
				o.Reply = o.Call + int64(data[3]%16)
				if data[0]&0x40 != 0 {
					o.Outcome = Failed
				}
			}
		}
		ops = append(ops, o)
		data = data[4:]
	}
	return ops
}

func hasTakes(ops []operation) bool {
	for _, o := range ops {
		if o.Kind == Take {
			return true
		}
	}
	return false
}
