package quota

// Counting says which units a strategy's counter contains when it works as it
// was built to, so that readings of it can be checked against the truth.
type Counting string

// The ways of counting.
const (
	CountsAdmitted Counting = "admitted" // admitted less given back
	CountsAttempts Counting = "attempts" // also the units of rejected requests
	CountsNothing  Counting = "nothing"  // keeps no count
)
