package measure

import (
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/stores"
)

func TestPlace(t *testing.T) {
	redis := stores.StartedHere
	postgres := stores.StartedHere
	beside := stores.OnThisHost
	remote := stores.Elsewhere
	inside := stores.InProcess
	const closed, open = false, true
	type want struct {
		mode, harness, stores string
		procs                 int
		reason                string // part of it
	}
	shared := func(procs int, reason string) want { return want{codes.PlacedShared, "", "", procs, reason} }
	few := func(procs int) want { return shared(procs, "fewer than 4 cores") }
	apart := func(harness, stores string, procs int) want {
		return want{codes.PlacedApart, harness, stores, procs, "started here"}
	}
	auto := Cores{}
	asApart := Cores{Mode: CoresApart}
	for _, tc := range []struct {
		name   string
		asked  Cores
		open   bool
		cores  int
		stores []stores.Place
		want   want
	}{
		{"one core", auto, closed, 1, []stores.Place{redis}, shared(1, "one core")},
		{"two cores", auto, closed, 2, []stores.Place{redis}, few(2)},
		{"three cores", auto, closed, 3, []stores.Place{redis}, few(3)},
		{"four cores", auto, closed, 4, []stores.Place{redis}, apart("0-1", "2-3", 2)},
		{"two cores, apart", asApart, closed, 2, []stores.Place{redis}, apart("0", "1", 1)},
		{"three cores, apart", asApart, closed, 3, []stores.Place{redis}, apart("0-1", "2", 2)},
		{"eight cores", auto, closed, 8, []stores.Place{redis}, apart("0-3", "4-7", 4)},
		{"several stores share", auto, closed, 5, []stores.Place{redis, redis}, apart("0-2", "3-4", 3)},
		{"a model beside a store", auto, closed, 4, []stores.Place{redis, inside}, apart("0-1", "2-3", 2)},
		{"a remote one beside ours", auto, closed, 4, []stores.Place{redis, remote}, apart("0-1", "2-3", 2)},
		{"no store", auto, closed, 4, nil, shared(4, "no store is needed")},
		{"in this process", auto, closed, 4, []stores.Place{inside}, shared(4, "no server")},
		{"remote", asApart, closed, 4, []stores.Place{remote, inside}, shared(4, "no server")},
		{"not ours", auto, closed, 4, []stores.Place{beside}, want{codes.PlacedBeside, "0-2", "", 3, "running already"}},
		{"not ours, two cores", auto, closed, 2, []stores.Place{beside, remote}, few(2)},
		{"not ours, one core", auto, closed, 1, []stores.Place{beside}, shared(1, "one core")},
		{"PostgreSQL", auto, closed, 2, []stores.Place{postgres}, few(2)},
		{"PostgreSQL and Redis", auto, closed, 3, []stores.Place{redis, postgres}, few(3)},
		{"PostgreSQL, four cores", auto, closed, 4, []stores.Place{postgres}, apart("0-1", "2-3", 2)},
		{"PostgreSQL apart", asApart, closed, 2, []stores.Place{postgres}, apart("0", "1", 1)},
		{"not ours, apart on two", asApart, closed, 2, []stores.Place{beside},
			want{codes.PlacedBeside, "0", "", 1, "running already"}},

		{"open, one core", auto, open, 1, []stores.Place{redis}, shared(2, "one core")},
		{"open, two cores", auto, open, 2, []stores.Place{redis}, few(2)},
		{"open, three cores", auto, open, 3, []stores.Place{postgres}, few(3)},
		{"open, four cores", auto, open, 4, []stores.Place{redis}, apart("0-2", "3", 3)},
		{"open, six cores", auto, open, 6, []stores.Place{redis, postgres}, apart("0-2", "3-5", 3)},
		{"open, eight cores", auto, open, 8, []stores.Place{redis}, apart("0-3", "4-7", 4)},
		{"open, apart on two", asApart, open, 2, []stores.Place{redis}, apart("0", "1", 2)},
		{"open, not ours", auto, open, 8, []stores.Place{beside}, shared(8, "running already")},
		{"open, remote", auto, open, 8, []stores.Place{remote}, shared(8, "no server")},
		{"open, no store", auto, open, 2, nil, shared(2, "no store")},

		{"shared", Cores{Mode: CoresShared}, closed, 8, []stores.Place{redis}, shared(8, "asked for")},
		{"shared, open", Cores{Mode: CoresShared}, open, 8, []stores.Place{redis}, shared(8, "asked for")},
		{"given", given("0", "2-3"), closed, 4, []stores.Place{redis}, want{codes.PlacedGiven, "0", "2-3", 1, "asked for"}},
		{"given, open", given("0-1", "2"), open, 4, []stores.Place{redis}, want{codes.PlacedGiven, "0-1", "2", 2, "asked for"}},
		{"given, three for an open loop", given("0-2", "3"), open, 4, []stores.Place{redis},
			want{codes.PlacedGiven, "0-2", "3", 3, "asked for"}},
		{"given, overlapping", given("0-1", "1-2"), closed, 4, []stores.Place{redis},
			want{codes.PlacedGiven, "0-1", "1-2", 2, "harness and stores share 1"}},
		{"given, the harness alone", given("1", ""), closed, 4, []stores.Place{remote},
			want{codes.PlacedGiven, "1", "", 1, "asked for"}},
		{"given, the stores alone", given("", "1"), closed, 4, []stores.Place{redis},
			want{codes.PlacedGiven, "", "1", 4, "asked for"}},
		{"given, no store of ours", given("0", "1"), closed, 4, []stores.Place{beside},
			want{codes.PlacedGiven, "0", "", 1, "no store that was started here"}},
	} {
		g := &ground{open: tc.open, cores: firstCores(tc.cores), known: true, procs: tc.cores, stores: tc.stores}
		got := tc.asked.place(g)
		if got.Mode != tc.want.mode || got.Harness != tc.want.harness || got.Stores != tc.want.stores ||
			got.Procs != tc.want.procs || !strings.Contains(got.Reason, tc.want.reason) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		// A program that was told to use fewer threads goes on to.
		g.procs = 1
		most := 1
		if tc.open {
			most = 2
		}
		if got := tc.asked.place(g); got.Procs != most {
			t.Errorf("%s, with GOMAXPROCS 1: %d, want %d", tc.name, got.Procs, most)
		}
	}
}

// TestPlaceByThreadsAlone has a system that does not let a program choose its cores.
func TestPlaceByThreadsAlone(t *testing.T) {
	for _, tc := range []struct {
		open  bool
		cores int
		place stores.Place
		procs int
	}{
		{false, 1, stores.StartedHere, 1},
		{false, 2, stores.StartedHere, 2},
		{false, 5, stores.StartedHere, 3},
		{false, 8, stores.StartedHere, 4},
		{false, 8, stores.OnThisHost, 7},
		{false, 8, stores.Elsewhere, 8},
		{true, 1, stores.StartedHere, 2},
		{true, 8, stores.OnThisHost, 8},
	} {
		g := &ground{open: tc.open, cores: firstCores(tc.cores), procs: tc.cores, stores: []stores.Place{tc.place}}
		if got := (Cores{}).place(g); got.Mode != codes.PlacedShared || got.Harness+got.Stores != "" ||
			got.Procs != tc.procs {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// TestPacerThatReleasesOften leaves two threads to the workers of an open loop.
func TestPacerThatReleasesOften(t *testing.T) {
	for _, tc := range []struct{ procs, seldom, often int }{{1, 2, 2}, {2, 2, 3}, {3, 3, 3}, {8, 8, 8}} {
		g := &ground{open: true, cores: firstCores(tc.procs), procs: tc.procs}
		seldom := (Cores{}).place(g).Procs
		g.often = true
		if often := (Cores{}).place(g).Procs; seldom != tc.seldom || often != tc.often {
			t.Errorf("%+v: %d, and %d with a pacer that releases often", tc, seldom, often)
		}
	}
}

// TestPlaceKeepsNeighboursTogether has two physical cores of two processors each,
// whose numbers alternate.
func TestPlaceKeepsNeighboursTogether(t *testing.T) {
	g := &ground{cores: []int{0, 2, 1, 3}, known: true, procs: 4, stores: []stores.Place{stores.StartedHere}}
	if got := (Cores{}).place(g); got.Harness != "0,2" || got.Stores != "1,3" {
		t.Errorf("%+v", got)
	}
}

func firstCores(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func given(harness, own string) Cores {
	text := "harness=" + harness + ",stores=" + own
	text = strings.TrimPrefix(strings.TrimSuffix(text, ",stores="), "harness=,")
	c, err := ParseCores(text)
	if err != nil {
		panic(err)
	}
	return c
}
