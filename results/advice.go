package results

// AdviceCode says what is wrong with a command, e.g. "no-ttl".
type AdviceCode string

// The codes of advice.
const (
	// AdviseSlots is for keys of one command or transaction in several slots: a Redis Cluster refuses it.
	AdviseSlots AdviceCode = "slots"
	// AdviseCallerClock is for an argument that tells the caller's time, if the script does not ask Redis for TIME.
	AdviseCallerClock AdviceCode = "caller-clock"
	// AdviseNoTTL is for a key that never expires, although its quota has windows.
	AdviseNoTTL AdviceCode = "no-ttl"
	// AdviseTTLGap is for a key that has no time to live if its caller dies between two commands.
	AdviseTTLGap AdviceCode = "ttl-gap"
	// AdviseUnbounded is for a key that grows in every window.
	AdviseUnbounded AdviceCode = "unbounded"
)

// Advice is on commands of a strategy to Redis that break no property of a search, and fail in production.
type Advice struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Code says what is wrong with the command.
	Code AdviceCode `json:"code" jsonschema:"enum=slots,enum=caller-clock,enum=no-ttl,enum=ttl-gap,enum=unbounded"`
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
