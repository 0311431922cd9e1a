package measure

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/stops"
)

// gate is shut while an instance stands still.
type gate struct{ sync.RWMutex }

// pass waits until it is open.
func (g *gate) pass() {
	g.RLock()
	defer g.RUnlock()
}

// heldConn carries nothing while its instance stands still: what comes meanwhile waits.
type heldConn struct {
	net.Conn
	gate *gate
}

func (c heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.gate.pass()
	return n, err
}

func (c heldConn) Write(b []byte) (int, error) {
	c.gate.pass()
	return c.Conn.Write(b)
}

// standStill has instances stand still.
func (s *site) standStill(x stops.Stop, wait func(time.Duration) bool) {
	if !wait(x.At) {
		return
	}
	for i := range s.gates {
		if x.Of(i) {
			s.gates[i].Lock()
			defer s.gates[i].Unlock()
		}
	}
	began := s.tb.nano()
	wait(x.Pause)
	s.paused.Most(s.tb.nano() - began)
}

// checkPauses reports the first pause that no run of these instances can have.
func (c *Config) checkPauses() error {
	all, err := stops.Plan(c.Pauses, nil, c.Duration, c.Instances)
	for _, x := range all {
		if x.Pause >= c.DecisionTimeout {
			return fmt.Errorf("a pause of %v: decisions are given up after %v, so give a longer --decision-timeout", x.Pause, c.DecisionTimeout)
		}
	}
	return err
}
