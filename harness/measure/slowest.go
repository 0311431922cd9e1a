package measure

import (
	"math"
	"time"

	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/strategies"
)

// slowest keeps the longest response of each short stretch of an open loop's
// schedule, so that the separate events behind a percentile of response times can
// be counted once the percentile is known.
type slowest struct {
	width int64 // of a stretch, in nanoseconds
	most  []strategies.Tally
}

const (
	finest      = int64(time.Millisecond) // a tenth of the gap that separates two events
	maxStretchs = 1 << 22                 // 32 MB; an hour at the finest
)

// newSlowest makes one for a schedule of that length in nanoseconds. If the
// length is not known, or is more than the finest stretches cover, they are wider.
func newSlowest(length int64) *slowest {
	width := max(finest, length/maxStretchs+1)
	return &slowest{width: width, most: make([]strategies.Tally, min(length/width+1, maxStretchs))}
}

// record notes a response to a request that was due at that time since the epoch.
func (s *slowest) record(due, response int64) {
	i := min(max(due, 0)/s.width, int64(len(s.most)-1))
	s.most[i].Most(response)
}

// explained is the share of the moments with a latency of at least that length in which a thread waited for a core for
// long enough to be the reason; -1 if that is not known. The reason for a latency is what explains at least half of its
// distance from the median.
func (s *slowest) explained(cores coreWaits, epoch, least, median int64) float64 {
	if least <= 0 {
		return -1
	}
	return cores.Explains(func(yield func(monitor.Moment) bool) {
		for i := range s.most {
			from := epoch + int64(i)*s.width
			if most := s.most[i].Load(); most >= least && !yield(monitor.Moment{From: from, To: from + s.width, Latency: most}) {
				return
			}
		}
	}, (least-median)/2)
}

// stalls counts the separate events behind responses of at least that length; -1
// if stretches are too wide to tell events apart.
func (s *slowest) stalls(least int64) int {
	if s.width > stat.StallGap || least <= 0 {
		return -1
	}
	var moments []int64
	for i := range s.most {
		if s.most[i].Load() >= least {
			moments = append(moments, int64(i)*s.width)
		}
	}
	return stat.Stalls(moments)
}

// scheduleLength is how long an open loop's schedule is expected to be, in
// nanoseconds; 0 if nothing bounds it.
func scheduleLength(duration, requests int64, perSecond float64) int64 {
	switch {
	case duration > 0:
		return duration
	case perSecond > 0 && requests < math.MaxInt64:
		return int64(float64(requests) / perSecond * 1.5 * float64(time.Second))
	default:
		return 0
	}
}
