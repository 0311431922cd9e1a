package codes

// Advice says what is wrong with a command, e.g. "no-ttl".
type Advice string

// The codes of advice.
const (
	// AdviseSlots is for keys of one command or transaction in several slots: a Redis Cluster refuses it.
	AdviseSlots Advice = "slots"
	// AdviseCallerClock is for an argument that tells the caller's time, if the script does not ask Redis for TIME.
	AdviseCallerClock Advice = "caller-clock"
	// AdviseNoTTL is for a key that never expires, although its quota has windows.
	AdviseNoTTL Advice = "no-ttl"
	// AdviseTTLGap is for a key that has no time to live if its caller dies between two commands.
	AdviseTTLGap Advice = "ttl-gap"
	// AdviseUnbounded is for a key that grows in every window.
	AdviseUnbounded Advice = "unbounded"
)
