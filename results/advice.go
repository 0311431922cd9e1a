package results

import "github.com/quotabench/quotabench/internal/codes"

// Advice is on commands of a strategy to Redis that break no property of a search, and fail in production.
type Advice struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Code says what is wrong with the command.
	Code codes.AdviceCode `json:"code" jsonschema:"enum=slots,enum=caller-clock,enum=no-ttl,enum=ttl-gap,enum=unbounded"`
	// Policy under which it showed first, in words.
	Policy string `json:"policy"`
	// Names of the commands that were sent together, each once, e.g. "ZADD".
	Names string `json:"names"`
	// Command is the first one of which this is true.
	Command string `json:"command"`
	// Count is of how many commands, or of how many keys that commands of these names made, it is true.
	Count int64 `json:"count"`
	// Keys of the example: two for slots, none for caller-clock, and one for others.
	Keys []string `json:"keys,omitempty"`
	// Slots of the two keys in a Redis Cluster.
	Slots []int `json:"slots,omitempty"`
	// Entries of the key at the ends of four windows, for unbounded.
	Entries []int `json:"entries,omitempty"`
}
