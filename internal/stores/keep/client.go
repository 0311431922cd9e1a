package keep

// Conn is a client as a [stores.Conn].
type Conn struct {
	Of  any
	End func() error
}

// Client implements [stores.Conn].
func (c Conn) Client() any { return c.Of }

// Close implements [stores.Conn].
func (c Conn) Close() error { return c.End() }
