package results

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
)

// Stored is what a strategy kept in one store when a round was over.
type Stored struct {
	// Store is its name.
	Store string `json:"store"`
	// Subjects that the strategy was asked about or that were set up, those of the
	// warm-up among them.
	Subjects int64 `json:"subjects"`
	// Entries are keys, rows, nodes or messages, by the kind of store. In a simulation
	// with several Redis they are those of all.
	Entries int64 `json:"entries"`
	// Bytes that the store itself says it takes for them; 0 if it does not say.
	Bytes int64 `json:"bytes,omitempty"`
	// BytesPerSubject is Bytes by Subjects; 0 if they are unknown.
	BytesPerSubject float64 `json:"bytes_per_subject,omitempty"`
	// Extended is how often the time to live of a key was made longer, or taken away; absent
	// unless a simulation counted it.
	Extended *int64 `json:"ttl_extended,omitempty"`
	// OverTime are entries at a quarter, half and three quarters of the round; absent
	// if they were not counted.
	OverTime []StoredAt `json:"over_time,omitempty"`
}

// StoredAt is what there was at one moment.
type StoredAt struct {
	// AtNS is the moment in nanoseconds since the round began.
	AtNS int64 `json:"at_ns"`
	// Entries then.
	Entries int64 `json:"entries"`
	// WithoutTTL are those of them that never expire.
	WithoutTTL int64 `json:"without_ttl,omitempty"`
	// Bytes by which the data set of a real store has grown until then; 0 if it does not say.
	Bytes int64 `json:"bytes,omitempty"`
}

// NewStored fills in what follows from the other figures.
func NewStored(store string, subjects, entries, bytes int64, overTime []StoredAt) Stored {
	k := Stored{Store: store, Subjects: subjects, Entries: entries, Bytes: bytes, OverTime: overTime}
	if subjects > 0 {
		k.BytesPerSubject = float64(bytes) / float64(subjects)
	}
	return k
}

// mergeStored keeps of each store the round that had the most entries, and among those the
// most bytes.
func (s *Summary) mergeStored(stored []Stored) {
	for _, k := range stored {
		most, _ := collect.In(&s.Stored, k, func(stored Stored) bool { return stored.Store == k.Store })
		if k.Entries > most.Entries || k.Entries == most.Entries && k.Bytes > most.Bytes {
			*most = k
		}
	}
}

// StoresText names the stores, their kinds and versions, servers that are alike together.
func (f *File) StoresText() string {
	var names collect.By[string, string]
	for _, name := range f.StoreNames() {
		store := f.Stores[name]
		family, _, _ := strings.Cut(name, ".")
		version, _, _ := strings.Cut(store.Version, " ") // after it comes a distribution's name for its build
		names.Add(format.Plain(format.Join(" ", family, store.Kind, version)), name)
	}
	return format.List(names.Keys, ", ", func(text string) string {
		if n := len(names.Of[text]); n > 1 {
			return fmt.Sprintf("%d x %s", n, text)
		}
		return text
	})
}
