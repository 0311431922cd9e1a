package sim

import "testing"

// Of repeated simulations the least processor time counts, if they made the same requests and were right.
func TestLeastOf(t *testing.T) {
	made := func(trace string, ns float64, valid bool) *pass {
		p := &pass{}
		p.run.Trace = trace
		p.run.Cost.ClientCPU = ns
		p.run.Audit.Valid = valid
		return p
	}
	for _, c := range []struct {
		again *pass
		want  float64
	}{
		{made("1", 80, true), 80}, {made("1", 120, true), 100}, {made("2", 80, true), 100}, {made("1", 80, false), 100},
		{made("1", 0, true), 100},
	} {
		p := made("1", 100, true)
		p.leastOf(c.again)
		if p.run.Cost.ClientCPU != c.want {
			t.Errorf("%g ns after 100, valid %t: %g, want %g", c.again.run.Cost.ClientCPU, c.again.run.Audit.Valid,
				p.run.Cost.ClientCPU, c.want)
		}
	}
}
