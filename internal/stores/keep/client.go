package keep

import (
	"net"

	"github.com/quotabench/quotabench/stores"
)

// Conn is a client as a [stores.Conn].
type Conn struct {
	Of  any
	End func() error
}

// Client implements [stores.Conn].
func (c Conn) Client() any { return c.Of }

// Close implements [stores.Conn].
func (c Conn) Close() error { return c.End() }

// Around puts what a client's connections are to have around one that was dialled: what
// o wraps it in, and a meter that reads by p.
func Around(c net.Conn, o stores.ConnOptions, p stores.Parser) net.Conn {
	if o.Wrap != nil {
		c = o.Wrap(c)
	}
	if o.Meter != nil {
		c = o.Meter.Conn(c, p)
	}
	return c
}
