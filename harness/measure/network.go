package measure

import (
	"net"

	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/seed"
)

// link is the network between an instance and a store, for its connections; nil if nothing is to be wrong with it.
func (s *site) link(store string, instance int) func(net.Conn) net.Conn {
	random := seed.Rand(s.cfg.Seed, seed.Conditions, s.round, uint64(instance), uint64(len(s.links)))
	l := network.NewLink(s.network, func(c network.Condition) bool {
		return s.concerns(c.Store, store) && (c.Instance < 0 || c.Instance == instance)
	}, s.cfg.Duration, func() int64 { return s.tb.nano() + 1 }, random)
	if l == nil {
		return nil
	}
	s.links = append(s.links, l)
	return l.Wrap
}

// loses reports whether requests to a store, or with "" to any, may fail by what is wrong with the network.
func (s *site) loses(store string) bool {
	return network.Loses(s.network, func(of string) bool { return store == "" || s.concerns(of, store) })
}

// losses notes how many requests and replies the network has lost.
func (p *pass) losses() {
	for _, l := range p.s.links {
		p.run.LostRequests += l.Lost.Load()
		p.run.LostReplies += l.LostReplies.Load()
	}
}

// goWrong begins what is wrong with the network, and plans the outages. Pauses are counted from now. What it returns ends them.
func (s *site) goWrong() (over []func()) {
	s.began.Store(s.tb.nano())
	for _, l := range s.links {
		l.Begin()
		over = append(over, l.End)
	}
	for _, o := range s.outages {
		over = append(over, o.schedule(s.tb.nano, s.cfg.Duration))
	}
	return over
}
