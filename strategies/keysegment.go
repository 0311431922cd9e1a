package strategies

// KeySegment is how a record's keys call the policy of that name. Its own policy
// has the record's word for it, any other one its own name. A policy whose name is
// that very word changes places with the record's, so that two policies never have
// the same segment.
func KeySegment(policy, own, word string) string {
	switch policy {
	case own:
		return word
	case word:
		return own
	}
	return policy
}
