package sim

import (
	"errors"
	"fmt"
	"time"
)

// Topology is where instances and stores are. There is one Redis in each region
// and one PostgreSQL, in the first.
type Topology struct {
	// Regions by name; none means a single one.
	Regions []string
	// Distances are round trips between regions, in both directions; nil takes
	// 80 to 150 ms.
	Distances [][]time.Duration
	// Instances of the application in each region. Default 1.
	Instances int
	// SharedRedis puts one Redis into the first region instead.
	SharedRedis bool
	// Skew is how far instances' clocks are ahead, by instance; missing ones are
	// right.
	Skew []time.Duration
	// Home is the share of a subject's requests, 0 to 1, that reach an instance of
	// its home region; the others reach any.
	Home float64
}

// Three regions as record 003 has them.
func Three() []string { return []string{"us-east-1", "eu-west-1", "ap-southeast-1"} }

// nearest and farthest are the round trips between neighbouring regions and
// between those at either end.
const (
	nearest  = 80 * time.Millisecond
	farthest = 150 * time.Millisecond
)

func (t *Topology) complete() error {
	if len(t.Regions) == 0 {
		t.Regions = []string{"local"}
	}
	if t.Instances == 0 {
		t.Instances = 1
	}
	n := len(t.Regions)
	if t.Distances == nil {
		t.Distances = make([][]time.Duration, n)
		for i := range t.Distances {
			t.Distances[i] = make([]time.Duration, n)
			for j := range n {
				switch apart := max(i-j, j-i); {
				case apart == 0:
				case apart == 1 || n < 3:
					t.Distances[i][j] = nearest
				default:
					t.Distances[i][j] = nearest + (farthest-nearest)*time.Duration(apart-1)/time.Duration(n-2)
				}
			}
		}
	}
	if len(t.Distances) != n {
		return fmt.Errorf("distances of %d regions are given for %d", len(t.Distances), n)
	}
	for i, row := range t.Distances {
		if len(row) != n {
			return fmt.Errorf("region %s has distances to %d of %d regions", t.Regions[i], len(row), n)
		}
		for j, d := range row {
			if d < 0 || d != t.Distances[j][i] || i == j && d != 0 {
				return fmt.Errorf("the distance between %s and %s is not one that a round trip can have", t.Regions[i], t.Regions[j])
			}
		}
	}
	switch {
	case t.Instances < 1 || t.total() > maxInstances:
		return fmt.Errorf("%d instances in each of %d regions: give 1 to %d in all", t.Instances, n, maxInstances)
	case len(t.Skew) > t.total():
		return fmt.Errorf("clocks of %d instances are set, and there are %d", len(t.Skew), t.total())
	case !(t.Home >= 0 && t.Home <= 1):
		return errors.New("the share of requests at home is not from 0 to 1")
	}
	return nil
}

// maxInstances is how many an event of the oracle can tell apart.
const maxInstances = 255

func (t *Topology) total() int { return len(t.Regions) * t.Instances }

// region of an instance: instances are numbered region by region.
func (t *Topology) region(instance int) int { return instance / t.Instances }

// skew of an instance's clock.
func (t *Topology) skew(instance int) time.Duration {
	if instance < len(t.Skew) {
		return t.Skew[instance]
	}
	return 0
}

// maxSkew is the largest difference between two instances' clocks.
func (t *Topology) maxSkew() time.Duration {
	var lo, hi time.Duration
	for i := range t.total() {
		if i == 0 {
			lo, hi = t.skew(i), t.skew(i)
		}
		lo, hi = min(lo, t.skew(i)), max(hi, t.skew(i))
	}
	return hi - lo
}

// assign chooses the instance for request i of a subject.
func (t *Topology) assign(seed, i uint64, subject uint32) int {
	n := uint64(t.total())
	if n == 1 {
		return 0
	}
	x := mix(seed ^ mix(i+1))
	if t.Home > 0 && float64(x>>40)/(1<<24) < t.Home {
		home := mix(seed^uint64(subject)*0x9E3779B97F4A7C15) % uint64(len(t.Regions))
		return int(home)*t.Instances + int(mix(x)%uint64(t.Instances))
	}
	return int(mix(x) % n)
}

// mix spreads the bits of x (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
