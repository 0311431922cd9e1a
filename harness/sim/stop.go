package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// stop is a pause of instances, or a restart.
type stop struct {
	at, pause time.Duration // since the start, and for how long; 0 restarts
	instance  int           // or -1 for all
}

// stopForm has a share below 1, how long a pause is, and an instance.
var stopForm = regexp.MustCompile(`^(0|0?\.\d+)(?:\+([^:]+))?(?::(\d+))?$`)

// stops are those that are planned, in the order of their time.
func (c *Config) stops() (all []stop, err error) {
	for i, text := range slices.Concat(c.Pauses, c.Restarts) {
		m, pauses, x := stopForm.FindStringSubmatch(text), i < len(c.Pauses), stop{instance: -1}
		if m == nil || (m[2] != "") != pauses {
			return nil, fmt.Errorf("%q is not of the form 0.5+11s:1 for a pause, or 0.5:1 for a restart: when, as a share of the "+
				"duration, for how long, and which instance, from 0; without one all of them", text)
		}
		at, _ := strconv.ParseFloat(m[1], 64)
		x.at = time.Duration(at * float64(c.Duration))
		x.pause, _ = time.ParseDuration(m[2])
		if m[3] != "" {
			x.instance, err = strconv.Atoi(m[3])
		}
		switch {
		case c.Duration == 0:
			return nil, errors.New("a pause or a restart needs a duration to be a share of: give --duration")
		case err != nil, x.instance >= c.Topology.total():
			return nil, fmt.Errorf("%q is of instance %s, and there are %d, counted from 0", text, m[3], c.Topology.total())
		case pauses && (x.pause <= 0 || x.pause > c.Duration-x.at):
			return nil, fmt.Errorf("the pause %q is of no time that ends within the duration of %v", text, c.Duration)
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(a, b stop) int { return cmp.Compare(a.at, b.at) })
	return all, nil
}

// errRestarted is what a caller sees of a process that ends.
var errRestarted = &net.OpError{Op: "read", Net: "tcp", Err: errors.Join(errors.New("planned restart"), syscall.ECONNRESET)}

// stopping lets virtual time pass up to a moment, and carries out what is planned until then.
func (p *pass) stopping(ctx context.Context, until time.Time) error {
	all, err := p.cfg.stops()
	for _, x := range all {
		if err = p.through(p.cfg.Start.Add(x.at)); err != nil || p.cut || p.st.s.Since() < x.at { // then nothing is left to do
			return err
		}
		if err = p.stop(ctx, x); err != nil {
			return err
		}
	}
	return cmp.Or(err, p.through(until))
}

// stop has instances stand still, or opens them anew and ends what they were doing.
func (p *pass) stop(ctx context.Context, x stop) error {
	for i, process := range p.st.process {
		switch {
		case x.instance >= 0 && x.instance != i:
			continue
		case x.pause > 0:
			p.paused = max(p.paused, process.Pause(x.pause))
			continue
		}
		p.st.w.watching = false
		err := p.st.Reopen(context.WithoutCancel(ctx), p.st, i)
		p.st.w.watching = true
		if err != nil {
			return err
		}
		process.Crash(errRestarted)
		p.restarts = append(p.restarts, int64(x.at))
	}
	return nil
}
