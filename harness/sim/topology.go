package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/trouble"
)

// Topology is where instances and stores are. There is one Redis in each region
// and one PostgreSQL, in the first.
type Topology struct {
	// Regions by name; none means a single one.
	Regions []string
	// SharedRedis puts one Redis into the first region instead.
	SharedRedis bool
	// Home is the share of a subject's requests, 0 to 1, that reach an instance of
	// its home region; the others reach any.
	Home float64

	instances int             // of the application in each region
	clocks    []trouble.Clock // of all instances; nil if none is wrong
}

// adr005Regions are the three regions that ADR-005 has.
func adr005Regions() []string { return []string{"us-east-1", "eu-west-1", "ap-southeast-1"} }

// nearest and farthest are the round trips between neighbouring regions and
// between those at either end.
const (
	nearest  = 80 * time.Millisecond
	farthest = 150 * time.Millisecond
)

func (t *Topology) complete(instances int) error {
	t.instances = instances
	if len(t.Regions) == 0 {
		t.Regions = []string{"local"}
	}
	n := len(t.Regions)
	if n > bounds.MaxInstances {
		return fmt.Errorf("%d regions: give at most %d", n, bounds.MaxInstances)
	}
	for i, name := range t.Regions {
		if len(name) > maxRegionName || strings.ContainsFunc(name, func(r rune) bool {
			return !unicode.IsPrint(r)
		}) || !utf8.ValidString(name) {
			return fmt.Errorf("the name %q of a region has more than %d bytes, or characters that cannot be printed", name,
				maxRegionName)
		}
		if slices.Contains(t.Regions[:i], name) {
			return fmt.Errorf("the region %s is given twice", name)
		}
	}
	switch {
	case t.total() > bounds.MaxInstances:
		return fmt.Errorf("%d instances in each of %d regions: give 1 to %d in all", t.instances, n, bounds.MaxInstances)
	case !(t.Home >= 0 && t.Home <= 1):
		return errors.New("the share of requests at home is not from 0 to 1")
	}
	return nil
}

// maxRegionName is how long the name of a region may be, in bytes.
const maxRegionName = 60

func (t *Topology) total() int { return len(t.Regions) * t.instances }

// distance is the round trip between the first region and another one.
func (t *Topology) distance(region int) time.Duration {
	switch region {
	case 0:
		return 0
	case 1:
		return nearest
	default: // there are three or more
		return nearest + (farthest-nearest)*time.Duration(region-1)/time.Duration(len(t.Regions)-2)
	}
}

// region of an instance: instances are numbered region by region.
func (t *Topology) region(instance int) int { return instance / t.instances }

// clock of an instance.
func (t *Topology) clock(instance int) (clock trouble.Clock) {
	if instance < len(t.clocks) {
		clock = t.clocks[instance]
	}
	return clock
}

// skewed reports whether a clock is wrong.
func (t *Topology) skewed() bool {
	return slices.ContainsFunc(t.clocks, func(clock trouble.Clock) bool { return clock.Ahead != 0 })
}

// skews are how far clocks are ahead, and since when, in nanoseconds from the start; nil if all are from then on.
func (t *Topology) skews() (ahead []time.Duration, from []int64) {
	for _, clock := range t.clocks {
		ahead = append(ahead, clock.Ahead)
		from = append(from, int64(clock.From))
	}
	if !slices.ContainsFunc(from, func(n int64) bool { return n > 0 }) {
		from = nil
	}
	return ahead, from
}

// apart reports whether regions have stores of their own.
func (t *Topology) apart() bool { return len(t.Regions) > 1 && !t.SharedRedis }

// assign chooses the instance for request i of a subject, by the random stream
// that starts at start.
func (t *Topology) assign(start, i uint64, subject uint32) int {
	n := uint64(t.total())
	if n == 1 {
		return 0
	}
	x := seed.At(start, i)
	if t.Home > 0 && float64(x>>40)/(1<<24) < t.Home {
		home := seed.At(^start, uint64(subject)) % uint64(len(t.Regions))
		return int(home)*t.instances + int(seed.Mix(x)%uint64(t.instances))
	}
	return int(seed.Mix(x) % n)
}
