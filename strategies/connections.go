package strategies

// Connections is what a strategy asks of the client that an instance gets of one
// store. Zero values leave a matter to the runner.
type Connections struct {
	// Pool is the most connections of an instance. A measurement opens no more than
	// there are callers to use them, and its own setting goes first. Where a runner
	// lets one caller after the other go on, each caller has a connection.
	Pool int
}

// Connections are what the selection asks of its client of the store with the name.
func (s Selection) Connections(store string) Connections {
	if s.Meta.Connections == nil {
		return Connections{}
	}
	return s.Meta.Connections(store, s.Options)
}
