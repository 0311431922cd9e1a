package explore

import (
	_ "embed"

	"github.com/quotabench/quotabench/results"
)

// SchemaVersion is the version of the JSON form of a [Record].
const SchemaVersion = 1

// Schema is the JSON schema of a [Record].
//
//go:embed exploration.schema.json
var Schema []byte

// Record is all that one exploration found, as it is written in JSON.
type Record struct {
	Schema int `json:"schema"`
	// Kind is "exploration": nothing in it was measured.
	Kind string `json:"kind"`
	// Searches, Censuses of full enumerations, and Replays, each in the order in
	// which they were made.
	Searches []*Result   `json:"searches"`
	Censuses []*Census   `json:"censuses"`
	Replays  []*Replayed `json:"replays"`
	// Skipped lists strategies that could not take part.
	Skipped []results.Skipped `json:"skipped"`
	// Interrupted is set where the last search was ended before its bounds.
	Interrupted bool `json:"interrupted"`
}

// NewRecord makes an empty one.
func NewRecord() Record {
	return Record{
		Schema: SchemaVersion, Kind: "exploration",
		Searches: []*Result{}, Censuses: []*Census{}, Replays: []*Replayed{}, Skipped: []results.Skipped{},
	}
}
