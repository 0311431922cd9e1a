package codes

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
