package codec

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

func TestSeriesAsCSV(t *testing.T) {
	b, err := SeriesCSV([]results.Series{
		{Strategy: "a", Tiers: []string{"redis"}, Counters: []string{"redis"}, Samples: []results.Sample{{AtNS: 1_500_000_000, Issued: 3, Keys: 5, Hits: []int64{2}, Counters: []results.Counter{{Readings: 1, Worst: -4, StalenessNS: 20}}}}},
		{Strategy: "b", Samples: []results.Sample{{AtNS: 10}}},
	})
	want := "strategy,at_s,issued,admitted,rejected,errors,in_flight,usage,fill,leak,false_rejects,keys,decided by redis,redis readings,redis unknown,redis drifting,redis drift,redis drift size,redis worst drift,redis staleness_s,redis mean staleness_s,redis never\n" +
		"a,1.5,3,0,0,0,0,0,0,0,0,5,2,1,0,0,0,0,-4,0.00000002,0,0\n" +
		"b,0.00000001,0,0,0,0,0,0,0,0,0,0,,,,,,,,,,\n"
	if err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
}
