package quota

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestFlow checks every amount against fractions of any size.
func TestFlow(t *testing.T) {
	testenv.Sequential(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		w := Window{Kind: Bucket, Refill: 1 + r.Int64N(1<<r.IntN(40)), Length: time.Duration(1 + r.Int64N(1<<(1+r.IntN(58))))}
		if w.Refill/int64(w.Length) > 1 {
			continue
		}
		f := w.Flow()
		a := r.Int64N(1<<r.IntN(61)) - r.Int64N(1<<r.IntN(61))
		b := r.Int64N(1 << r.IntN(61))
		la := f.At(a)
		lb := f.At(b)
		rate := big.NewRat(w.Refill, int64(w.Length))
		exact := func(ns int64) *big.Rat { return new(big.Rat).Mul(rate, new(big.Rat).SetInt64(ns)) }
		of := func(l Level) *big.Rat {
			return new(big.Rat).Add(new(big.Rat).SetInt64(l.Units), big.NewRat(l.Part, int64(w.Length)))
		}
		if of(la).Cmp(exact(a)) != 0 || of(f.Less(la, lb)).Cmp(new(big.Rat).Sub(exact(a), exact(b))) != 0 {
			t.Fatalf("%d per %v: %+v after %d ns, %+v after %d", w.Refill, w.Length, la, a, lb, b)
		}
		if la.Compare(lb) != exact(a).Cmp(exact(b)) || of(la.Plus(3)).Cmp(new(big.Rat).Add(exact(a), big.NewRat(3, 1))) != 0 {
			t.Fatalf("%+v and %+v are compared or added wrongly", la, lb)
		}
		if up := new(big.Rat).SetInt64(la.Ceil()); up.Cmp(exact(a)) < 0 || up.Sub(up, big.NewRat(1, 1)).Cmp(exact(a)) >= 0 {
			t.Fatalf("%+v is rounded to %d", la, la.Ceil())
		}
		if lb.Units < 1<<50 {
			if ns := f.Until(lb); exact(ns).Cmp(of(lb)) < 0 || ns > 0 && exact(ns-1).Cmp(of(lb)) >= 0 {
				t.Fatalf("%d per %v: %+v takes %d ns", w.Refill, w.Length, lb, ns)
			}
		}
	}
}

// TestFlowSaturates: what does not fit into a number is as much as can be.
func TestFlowSaturates(t *testing.T) {
	f := Window{Kind: Bucket, Refill: 1 << 60, Length: 1}.Flow()
	if l := f.At(1 << 60); l.Units != most {
		t.Errorf("%+v", l)
	}
	if l := f.At(-1 << 60); l.Units != -most {
		t.Errorf("%+v", l)
	}
	slow := Window{Kind: Bucket, Refill: 1, Length: 1 << 60}.Flow()
	if ns := slow.Until(Level{Units: 1 << 60}); ns != 1<<63-1 {
		t.Errorf("%d ns", ns)
	}
	if (Flow{}).At(5) != (Level{}) || (Flow{}).Until(Level{Units: 1}) != 0 {
		t.Error("no flow refills something")
	}
}
