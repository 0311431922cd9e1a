package oracle

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
)

// TestManyEvents records and judges as many events as QUOTABENCH_LONG_EVENTS says, in
// trials of 100 requests of which 50 may be admitted, and takes at most 1 GiB of
// memory for it. 60 million events take a minute or two and about 1 GB of disk:
//
//	QUOTABENCH_LONG_EVENTS=60000000 go test ./oracle -run TestManyEvents -v
func TestManyEvents(t *testing.T) {
	events, err := strconv.ParseInt(os.Getenv("QUOTABENCH_LONG_EVENTS"), 10, 64)
	if err != nil {
		t.Skip("QUOTABENCH_LONG_EVENTS does not say how many events")
	}
	const perTrial, workers = 100, 50
	h := NewHistory(HistoryOptions{Workers: workers, Dir: t.TempDir()})
	defer func() { _ = h.Close() }()
	began := clock.Nano()
	for i := range events {
		o := Admitted
		if i%perTrial > 50 { // one too many
			o = Rejected
		}
		call := i * 500
		h.Append(int(i%workers), Event{Call: call, Reply: call + 20_000 + i%7*100, Units: 1, Subject: uint32(i / perTrial),
			Outcome: o})
	}
	recorded := time.Duration(clock.Nano() - began)
	rss := peakRSS(t)
	v, err := h.Judge(Config{Window: quota.Window{Kind: quota.CalendarMonth}, Limit: 50,
		Epoch: time.Unix(1_700_000_000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events: recorded in %v (%d MiB), judged in %v (%d MiB)", events, recorded, rss>>20,
		time.Duration(clock.Nano()-began)-recorded, peakRSS(t)>>20)
	if want := events / perTrial; v.Issued.Requests != events || v.LeakUnits != want || v.Crossings != want {
		t.Errorf("%d requests, %d units leaked, %d crossings", v.Issued.Requests, v.LeakUnits, v.Crossings)
	}
	if n := peakRSS(t); n > 1<<30 {
		t.Errorf("%d MiB of memory", n>>20)
	}
}

// peakRSS is the most memory that the process had, in bytes.
func peakRSS(t *testing.T) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("this system does not tell how much memory a process had")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Skip("this system does not tell how much memory a process had")
	return 0
}
