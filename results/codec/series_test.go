package codec

import (
	"reflect"
	"testing"

	"github.com/quotabench/quotabench/results"
)

func TestSeriesAsCSV(t *testing.T) {
	b, err := SeriesCSV([]results.Series{
		{Strategy: "=a", Tiers: []string{"redis"}, Counters: []string{"redis"},
			Samples: []results.Sample{{AtNS: 1_500_000_000, Issued: 3, Keys: 5, Hits: []int64{2},
				Counters: []results.Counter{{Readings: 1, Worst: -4, StalenessNS: 20}}}}},
		{Strategy: "b", Samples: []results.Sample{{AtNS: 10}}},
	})
	want := "strategy,at_s,issued,admitted,rejected,errors,in_flight,usage,fill,leak,false_rejects,keys,decided by " +
		"redis,redis readings,redis unknown,redis drifting,redis drift,redis drift size,redis worst drift,redis " +
		"staleness_s,redis mean staleness_s,redis " +
		"never\n'=a,1.5,3,0,0,0,0,0,0,0,0,5,2,1,0,0,0,0,-4,0.00000002,0,0\nb,0.00000001,0,0,0,0,0,0,0,0,0,0,,,,,,,,,,\n"
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
}

// What was written is read again, also as a record of a kind that is not told.
func TestSeriesRoundTrip(t *testing.T) {
	series := []results.Series{{Strategy: "a", Unit: "requests", Tiers: []string{"redis"}, Counters: []string{},
		Samples: []results.Sample{{AtNS: 5, Hits: []int64{2}, Counters: []results.Counter{}}}}}
	b, err := SeriesJSON(series)
	if err != nil {
		t.Fatal(err)
	}
	r, err := DecodeRecord(b)
	if err != nil || r.File != nil || r.Exploration != nil || !reflect.DeepEqual(r.Series, series) {
		t.Errorf("%v, %+v", err, r)
	}
}
