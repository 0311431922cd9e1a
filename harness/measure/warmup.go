package measure

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// warmUp opens connections, loads scripts and prepares statements by requests of
// other subjects.
func (m *measurement) warmUp(ctx context.Context, s *site, policy *quota.Policy) (*drive, error) {
	c := m.cfg
	stream := warmStream{units: harness.LeastCost(policy)}
	if c.Shard.Shared {
		stream.whose = fmt.Sprintf("g%d-", c.Shard.Part)
	}
	d := &drive{
		tb: m.tb, instances: s.Instances, stream: stream, policy: policy, workers: c.Workers,
		requests: math.MaxInt64, duration: int64(warmUpTime(c.Duration)), firstID: harness.WarmUpID + uint64(c.Shard.Part)<<40,
		rec: newRecorder(c.Workers), subjects: newSubjects(stream, warmSubjects, warmSubjects), deadline: m.deadline(),
	}
	if err := s.Provision(ctx, policy, harness.Grants(stream, policy, warmSubjects), 0); err != nil {
		return nil, err
	}
	d.run(ctx)
	if err := d.failure(); err != nil {
		s.lose()
		return nil, err
	}
	// Errors that the strategy's source asks for are its answers.
	if d.rate() == 0 && d.counts.FirstError != nil && d.counts.Prescribed.Total() == 0 {
		return nil, fmt.Errorf("every warm-up request failed: %w", d.counts.FirstError)
	}
	return d, nil
}

// rate is the answers per second that a finished pass reached, prescribed errors
// among them.
func (d *drive) rate() float64 {
	n := d.counts.Admitted + d.counts.Rejected + d.counts.Prescribed.Total()
	return float64(n) / time.Duration(max(d.end-d.epoch, 1)).Seconds()
}

func warmUpTime(d time.Duration) time.Duration {
	if d == 0 {
		d = DefaultDuration
	}
	return min(max(d/8, 20*time.Millisecond), 200*time.Millisecond)
}

// warmSubjects are enough that the warm-up does not become a contest for one row.
const warmSubjects = 64

// warmStream asks for the smallest cost, of one subject after the other.
type warmStream struct {
	units int64
	whose string // of several generators
}

func (w warmStream) At(i int64, op *workloads.Op) {
	*op = workloads.Op{Subject: uint32(i % warmSubjects), Units: w.units}
}
func (warmStream) Len() int64 { return 0 }

// Name begins as stores know subjects by that nobody asks about any more.
func (w warmStream) Name(n uint32) string { return fmt.Sprintf("warm-up-%s%d", w.whose, n) }
