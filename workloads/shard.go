package workloads

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is one of several equal parts of a load, each with subjects of its own, so
// that several processes can share it. The zero value is the whole.
type Shard struct {
	// Part is its number, from 1.
	Part int
	// Of is how many parts there are.
	Of int
}

// maxShards is the most parts of a load.
const maxShards = 1000

// ParseShard reads a text such as "2/4".
func ParseShard(text string) (Shard, error) {
	part, of, ok := strings.Cut(text, "/")
	s := Shard{}
	var err error
	if s.Part, err = strconv.Atoi(part); err == nil {
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

// Seed derives the shard's seed, so that parts ask for different things.
func (s Shard) Seed(seed uint64) uint64 { return seed + uint64(max(s.Part-1, 0))*0xD1B54A32D192ED03 }

// Stream is the stream with subjects that no other shard has.
func (s Shard) Stream(of Stream) Stream {
	if s == (Shard{}) {
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
