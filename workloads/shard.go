package workloads

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Shard is one of several equal parts of a load, each with subjects of its own, so
// that several processes can share it. The zero value is the whole.
type Shard struct {
	// Part is its number, from 1.
	Part int
	// Of is how many parts there are.
	Of int
	// Shared is set if the parts have the subjects in common: each has the operations
	// Part-1, Part-1+Of and so on of one stream.
	Shared bool
}

// maxShards is the most parts of a load.
const maxShards = 1000

// jobIndex is the variable in which a pod of an Indexed Job finds its number, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// ParseShard reads a text such as "2/4", or "job/4" in a pod of an Indexed Job of Kubernetes that has four.
func ParseShard(text string) (Shard, error) {
	part, of, ok := strings.Cut(text, "/")
	s := Shard{}
	var err error
	if part == "job" {
		s.Part, err = strconv.Atoi(os.Getenv(jobIndex))
		s.Part++
	} else {
		s.Part, err = strconv.Atoi(part)
	}
	if err == nil {
		s.Of, err = strconv.Atoi(of)
	}
	if !ok || err != nil || s.Part < 1 || s.Part > s.Of || s.Of > maxShards {
		return Shard{}, fmt.Errorf("give a part and how many there are, e.g. 2/4, at most %d, not %q", maxShards, text)
	}
	return s, nil
}

// String is as [ParseShard] reads it; empty for the whole.
func (s Shard) String() string {
	if s == (Shard{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Part, s.Of)
}

// Has reports whether of things that are dealt out in turn the one with this number, from 0, is the shard's.
func (s Shard) Has(i int) bool { return s.Of == 0 || i%s.Of == s.Part-1 }

// Seed derives the shard's seed, so that parts ask for different things. Those that
// share subjects have one stream, and one seed.
func (s Shard) Seed(seed uint64) uint64 {
	if s.Shared {
		return seed
	}
	return seed + uint64(max(s.Part-1, 0))*0xD1B54A32D192ED03
}

// Op is the number, in the stream, of the part's operation i. Both count from 0.
func (s Shard) Op(i int64) int64 {
	if !s.Shared {
		return i
	}
	return i*int64(s.Of) + int64(s.Part-1)
}

// Ops is how many of the first n operations of the stream are the part's.
func (s Shard) Ops(n int64) int64 {
	if !s.Shared {
		return n
	}
	if n < int64(s.Part) {
		return 0
	}
	return (n-int64(s.Part))/int64(s.Of) + 1
}

// First reports whether the process does what is done once for all that share subjects.
func (s Shard) First() bool { return !s.Shared || s.Part == 1 }

// Arrivals are the part's of those of the stream. The zero value has all.
func (s Shard) Arrivals(of Arrivals) Arrivals {
	if !s.Shared {
		return of
	}
	return &everyNth{of, s.Part - 1, s.Of - 1}
}

// everyNth passes over some arrivals before the first and between two.
type everyNth struct {
	of         Arrivals
	skip, then int
}

func (e *everyNth) Next() (time.Duration, bool) {
	for range e.skip {
		if _, ok := e.of.Next(); !ok {
			return 0, false
		}
	}
	e.skip = e.then
	return e.of.Next()
}

// Stream is the stream with subjects that no other shard has, if they are not shared.
func (s Shard) Stream(of Stream) Stream {
	if s == (Shard{}) || s.Shared {
		return of
	}
	return &sharded{of, "@" + s.String()}
}

// sharded adds to the names of subjects what tells shards apart.
type sharded struct {
	Stream
	suffix string
}

func (s *sharded) Name(subject uint32) string { return s.Stream.Name(subject) + s.suffix }

// as is what a stream is other than a [Stream], also a shard's.
func as[T any](s Stream) (T, bool) {
	if part, ok := s.(*sharded); ok {
		s = part.Stream
	}
	t, ok := s.(T)
	return t, ok
}

// IsPrefilled reports whether subjects of the stream may have used something already.
func IsPrefilled(s Stream) bool {
	_, ok := as[Prefilled](s)
	return ok
}
