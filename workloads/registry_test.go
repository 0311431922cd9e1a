package workloads

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// goldens are the fingerprints of the first 5,000 operations of every workload
// with seed 1 and the policy that usual gives. A change here means that results are no
// longer comparable with older ones: say so in the changelog.
var goldens = map[string]struct {
	print    string
	ops      int
	subjects [2]int // distinct ones, at least and at most
}{
	"hot-key":  {"2bcbbb1728be3a272fb5820fbf2b8d0a", 5_000, [2]int{139, 139}},
	"steady":   {"14e2f2047075755afdace617e44372e5", 5_000, [2]int{1_500, 2_500}},
	"abuse":    {"1ea43eb16c17b78b8d53a8fc204506ee", 5_000, [2]int{1_500, 2_500}},
	"boundary": {"efa72af9517a1caf536489a707a84d13", 5_000, [2]int{20, 20}},
	"uploads":  {"afdd711e71f12dc476df61a2cdb28cf6", 5_000, [2]int{20, 20}},
	"trace":    {"45f4de78237ff1b3f3af2120aeb03f8f", 5, [2]int{3, 3}},
}

func TestGolden(t *testing.T) {
	if len(All()) == 0 {
		t.Fatal("no workload is registered")
	}
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			want, ok := goldens[m.Name]
			if !ok {
				t.Fatal("add a golden fingerprint")
			}
			s, _ := build(t, m.Name, Params{Seed: 1, Policy: usual(t, m)})
			n := int64(5_000)
			if s.Len() > 0 {
				n = min(n, s.Len())
			}
			names := map[string]bool{}
			var op Op
			for i := range n {
				s.At(i, &op)
				names[s.Name(op.Subject)] = true
				if op.Units < 1 {
					t.Fatalf("operation %d is %+v", i, op)
				}
			}
			if n != int64(want.ops) || len(names) < want.subjects[0] || len(names) > want.subjects[1] {
				t.Errorf("%d operations on %d subjects, want %d on %v", n, len(names), want.ops, want.subjects)
			}
			if got := Fingerprint(s, 5_000); got != want.print {
				t.Errorf("fingerprint %s, want %s", got, want.print)
			}
		})
	}
}

// TestGoldenForms pins the streams of every form of popularity and cost.
func TestGoldenForms(t *testing.T) {
	for _, c := range []struct {
		workload, popularity, cost, want string
	}{
		{"steady", "zipf:1", "policy", goldens["steady"].print},
		{"steady", "uniform", "constant:1", "e6a1d878a67fc1d4a02e3e34f0bf991a"},
		{"steady", "hot:0.5:10", "uniform:10-20", "0b254f60a8a28ebe948e48e60acf078d"},
		{"steady", "zipf:0.7", "lognormal:100:0.8", "8e62e410e03e85644519e9f7f6cd2f4e"},
		{"hot-key", "", "policy", goldens["hot-key"].print},
		{"hot-key", "", "uniform:10-20", "c7e52a4236308382cee46bda9f5747b7"},
		{"hot-key", "", "lognormal:100:0.8", "c231ec93d4186d88f85a652836671140"},
	} {
		s, _ := build(t, c.workload, Params{Seed: 1, Policy: policy(t, "agent-payments"),
			Options: given("popularity", c.popularity, "cost", c.cost)})
		if got := Fingerprint(s, 5_000); got != c.want {
			t.Errorf("%s, %s, %s: fingerprint %s, want %s", c.workload, c.popularity, c.cost, got, c.want)
		}
	}
}

// TestFingerprintTellsApart changes one thing at a time.
func TestFingerprintTellsApart(t *testing.T) {
	for _, m := range All() {
		base := Params{Seed: 1, Policy: usual(t, m)}
		seed := base
		limited := base
		seed.Seed = 2
		limited.Requests = 4
		s, _ := build(t, m.Name, base)
		again, _ := build(t, m.Name, base)
		if Fingerprint(s, 1000) != Fingerprint(again, 1000) {
			t.Errorf("%s: equal parameters make different streams", m.Name)
		}
		other, _ := build(t, m.Name, seed)
		if same := Fingerprint(s, 1000) == Fingerprint(other, 1000); same != (m.Name == "trace") {
			t.Errorf("%s: another seed makes the same stream: %v", m.Name, same)
		}
		short, _ := build(t, m.Name, limited)
		if short.Len() != 4 {
			t.Errorf("%s: %d operations, want 4", m.Name, short.Len())
		}
		if Fingerprint(s, 4) != Fingerprint(short, 1000) {
			t.Errorf("%s: a bound on requests changes the operations", m.Name)
		}
	}
	full, _ := build(t, "steady", Params{Policy: policy(t, "user-links"), Options: given("over-quota", 0.2)})
	empty, _ := build(t, "steady", Params{Policy: policy(t, "user-links"), Options: given("over-quota", 0.0)})
	if Fingerprint(full, 1000) == Fingerprint(empty, 1000) {
		t.Error("the fingerprint does not cover what subjects have used at the start")
	}
}

// TestAtIsPure reads each stream from several goroutines, backwards and
// forwards.
func TestAtIsPure(t *testing.T) {
	for _, m := range All() {
		s, _ := build(t, m.Name, Params{Seed: 7, Policy: usual(t, m)})
		n := int64(3_000)
		if s.Len() > 0 {
			n = min(n, s.Len())
		}
		want := make([]Op, n)
		for i := range want {
			s.At(int64(i), &want[i])
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				op := Op{99, 99, 99, 99, 99, 99, 99} // nothing of it may stay
				for k := range n {
					i := k
					if w%2 == 1 {
						i = n - 1 - k
					}
					s.At(i, &op)
					if op != want[i] {
						t.Errorf("%s: operation %d is %+v, then %+v", m.Name, i, want[i], op)
						return
					}
					s.Name(op.Subject)
					Initial(s, op.Subject)
				}
			})
		}
		wg.Wait()
		var op Op
		if a := testing.AllocsPerRun(100, func() { s.At(n-1, &op) }); a != 0 {
			t.Errorf("%s: At allocates %v times", m.Name, a)
		}
	}
}

func TestParamsAreChecked(t *testing.T) {
	p := policy(t, "user-links")
	bad := *p
	bad.Limit = 0
	costs := *p
	costs.Costs = []int64{1, 0}
	many := *p
	many.Costs = make([]int64, maxCosts+1)
	for i := range many.Costs {
		many.Costs[i] = 1
	}
	for _, c := range []struct {
		workload string
		params   Params
		want     string
	}{
		{"steady", Params{}, "no policy"},
		{"steady", Params{Policy: &bad}, "limit is 0"},
		{"steady", Params{Policy: &costs}, "cost of 0 units"},
		{"hot-key", Params{Policy: &many}, "65 costs"},
		{"steady", Params{Policy: p, Options: given("subjects", -1)}, "option subjects: -1 is not from 1 to 4194304"},
		{"steady", Params{Policy: p, Options: given("subjects", maxSubjects+1)}, "option subjects: 4194305 is not from"},
		{"steady", Params{Policy: p, Requests: -1}, "-1 requests"},
		{"steady", Params{Policy: p, Options: given("popularity", "zipf:-0.1")}, "zipf"},
		{"steady", Params{Policy: p, Options: given("popularity", "zipf:NaN")}, "zipf"},
		{"steady", Params{Policy: p, Options: given("over-quota", 1.1)}, "over-quota"},
		{"steady", Params{Policy: p, Options: given("over-quota", math.NaN())}, "over-quota"},
		{"steady", Params{Policy: p, Options: given("trace", "x.log")}, `no option "trace": it has subjects, popularity, cost, fill, over-quota`},
		{"steady", Params{Policy: p, Options: given("speed", 2)}, `no option "speed"`},
		{"hot-key", Params{Policy: p, Options: given("subjects", 5)}, "it has cost, fill"},
		{"hot-key", Params{Policy: p, Options: given("over-quota", 0.1)}, "it has cost, fill"},
		{"trace", Params{Policy: p}, "option trace is required"},
		{"trace", Params{Policy: p, Options: given("speed", -1)}, "option speed: -1 is not 0 or more"},
		{"trace", Params{Policy: p, Options: given("speed", math.Inf(1))}, "option speed: "},
		{"trace", Params{Policy: p, Options: given("trace", "testdata/none.log")}, "no such file"},
		{"trace", Params{Policy: p, Options: given("trace", "testdata")}, "is a directory"},
	} {
		m, err := Lookup(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.New(c.params)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "workload "+c.workload+": ") {
			t.Errorf("%s %+v: error %v, want one with %q", c.workload, c.params, err, c.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %v", err)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	_, err := Lookup("hotkey")
	for _, m := range All() {
		if err == nil || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("error %v does not name %s", err, m.Name)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	ok := Meta{Name: "mine", Doc: "d", Loop: Open, Rate: 1, Make: func(Params) (Stream, Info, error) {
		return nil, Info{}, nil
	}}
	if err := ok.validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Meta){
		"name":  func(m *Meta) { m.Name = "a b" },
		"doc":   func(m *Meta) { m.Doc = "" },
		"loop":  func(m *Meta) { m.Loop = "" },
		"rate":  func(m *Meta) { m.Rate = 0 },
		"value": func(m *Meta) { m.Options = []quota.Option{{Name: "x", Type: "int"}} },
		"type":  func(m *Meta) { m.Options = []quota.Option{{Name: "subjects"}} },
		"dup":   func(m *Meta) { m.Options = []quota.Option{{Name: "x"}, {Name: "x"}} },
		"end":   func(m *Meta) { m.Boundary = true },
		"make":  func(m *Meta) { m.Make = nil },
		"twice": func(m *Meta) { m.Name = "steady" },
	} {
		m := ok
		change(&m)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			Register(m)
		}()
	}
}

// TestAllPolicies runs every policy of the records with every workload that
// serves it.
func TestAllPolicies(t *testing.T) {
	for _, m := range All() {
		served := 0
		for _, p := range quota.Policies() {
			if err := m.ServesPolicy(&p); err != nil {
				if _, _, got := m.New(Params{Policy: &p}); got == nil || !strings.HasSuffix(got.Error(), err.Error()) {
					t.Errorf("%s/%s: not served (%v), but made: %v", m.Name, p.Name, err, got)
				}
				continue
			}
			served++
			s, info := build(t, m.Name, Params{Policy: &p})
			if info.Loop != m.Loop {
				t.Errorf("%s/%s: loop %q", m.Name, p.Name, info.Loop)
			}
			if OpsPerCrossing(s) > 0 && !m.Crosses {
				t.Errorf("%s/%s: makes crossings that it does not declare", m.Name, p.Name)
			}
			if m.Boundary && !p.Window.Kind.Tumbling() {
				t.Errorf("%s/%s: needs a boundary, and a %s window has none", m.Name, p.Name, p.Window.Kind)
			}
			var op Op
			for i := range int64(5) {
				s.At(i, &op)
				if (op.Fate != FateNone) != m.GivesBack {
					t.Errorf("%s/%s: gives back: %v, but operation %d is %+v", m.Name, p.Name, m.GivesBack, i, op)
				}
			}
		}
		if served == 0 {
			t.Errorf("%s serves no policy", m.Name)
		}
	}
}
