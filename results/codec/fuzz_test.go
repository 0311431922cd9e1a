package codec_test

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/export"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// minimal is an exploration that has one of all kinds, and few steps.
func minimal() results.Exploration {
	x := results.NewExploration()
	f := results.Finding{Strategy: "a:b=c", Policy: "agent-api", Property: "leak", Detail: "d", Units: 2, Token: "qb2.x",
		Columns: []results.Column{{Name: "A", Role: codes.RoleClient}},
		Steps: []results.Step{{Number: 1, Actor: "A", Role: codes.RoleClient, Event: codes.EventStart},
			{Number: 2, Actor: "clock", Role: codes.RoleClock, Column: -1, Event: codes.EventTick, At: 5}}}
	g := f
	x.Searches = append(x.Searches,
		&results.Search{Strategy: "a:b=c", Policy: "agent-api", Limit: 1, Clients: 2,
			Properties: []results.Property{"leak", "guarantee"}, Findings: []results.Finding{f},
			ServerFacts: results.ServerFacts{Aborts: []results.Abort{{Kind: "deadlock", Schedules: 1, Shortest: &g}}}})
	x.Censuses = append(x.Censuses, &results.Census{Strategy: "a", Schedules: 3, Leaking: 1, Shortest: &g})
	x.Replays = append(x.Replays, &results.Replay{Strategy: "a", Property: "leak", Finding: &g})
	return x
}

func FuzzDecodeExploration(f *testing.F) {
	x := minimal()
	f.Add(fixture.Must[[]byte](f)(codec.ExplorationJSON(&x)))
	numbered := minimal()
	numbered.Searches[0].Findings[0].Steps = []results.Step{{Number: math.MaxInt64, Actor: "A", Role: codes.RoleClient,
		Event: codes.EventCommand, Command: "GET k", Store: "redis"}, {Number: -7, Actor: "A", Role: codes.RoleClient,
		Event: codes.EventCommand, Reply: "1", Store: "redis"}}
	f.Add(fixture.Must[[]byte](f)(codec.ExplorationJSON(&numbered)))
	f.Add([]byte(`{"schema":2,"kind":"exploration","searches":[null],"censuses":[],"replays":[{"finding":null}],"skipped":[],"failed":[],"interrupted":false}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		record, err := codec.DecodeRecord(b)
		if err != nil {
			oneLine(t, err)
			return
		}
		if record.Exploration == nil {
			return
		}
		x := *record.Exploration
		again := fixture.Must[[]byte](t)(codec.ExplorationJSON(&x))
		if y, err := codec.DecodeRecord(again); err != nil || !reflect.DeepEqual(record, y) {
			t.Fatalf("read something else the second time: %v", err)
		}
		// All that reads a record gets along with it.
		if _, err := export.ExplorationCSV(&x); err != nil {
			t.Error(err)
		}
		if err := text.Exploration(io.Discard, layout.Page{}, &x); err != nil {
			t.Error(err)
		}
		for _, c := range x.Charts() {
			p, err := plot.Sequence(c)
			if err != nil {
				oneLine(t, err)
				continue
			}
			if _, err := p.SVG(); err != nil {
				oneLine(t, err)
			}
		}
	})
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
		t.Errorf("error of several lines, or of %d bytes: %.2000q", len(err.Error()), err)
	}
}

func FuzzDecodeSeries(f *testing.F) {
	f.Add(fixture.Must[[]byte](f)(codec.SeriesJSON([]results.Series{
		{Strategy: "=a", Unit: "requests", Tiers: []string{"redis"}, Counters: []string{"redis"},
			Outages: []results.Span{{Store: "redis", FromNS: 1, ToNS: 2}}, Samples: []results.Sample{
				{AtNS: 0, Hits: []int64{0}, Counters: []results.Counter{{}}},
				{AtNS: 1_500_000_000, Issued: 3, Leak: 1, Hits: []int64{2},
					Counters: []results.Counter{{Readings: 1, Worst: -4, StalenessNS: 20}}},
			}},
	})))
	f.Add([]byte(`{"schema":1,"series":[{"strategy":"a","unit":"u","tracked":1,"tiers":["x"],"counters":[],"samples":[{"hits":[]}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		record, err := codec.DecodeRecord(b)
		if err != nil {
			oneLine(t, err)
			return
		}
		s := record.Series
		if _, err := codec.SeriesCSV(s); err != nil {
			t.Error(err)
		}
		for i := range s {
			p, err := plot.Series(s[i])
			if err != nil {
				oneLine(t, err)
				continue
			}
			if _, err := p.Render("svg"); err != nil {
				oneLine(t, err)
			}
		}
	})
}

// FuzzRecord gives what was read to everything that reads a record of runs.
func FuzzRecord(f *testing.F) {
	rich := fixture.Full(f)
	rich.Runs = rich.Runs[:1]
	f.Add(fixture.Must[[]byte](f)(codec.Encode(rich)))
	x := minimal()
	f.Add(fixture.Must[[]byte](f)(json.Marshal(&x)))
	f.Add([]byte(`{"schema":1,"series":[]}`))
	f.Add([]byte(`{"kind":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := codec.DecodeRecord(b)
		if err != nil {
			oneLine(t, err)
			return
		}
		if r.File == nil {
			return
		}
		for line := range strings.Lines(string(export.GoBench(r.File))) {
			if rest, ok := strings.CutPrefix(line, "Benchmark"); ok && len(strings.Split(rest, "\t")) < 3 {
				t.Errorf("no line of a benchmark: %q", line)
			}
		}
		if _, err := export.RunsCSV(r.File); err != nil {
			t.Error(err)
		}
		if _, err := export.HGRM(r.File); err != nil {
			oneLine(t, err)
		}
	})
}
