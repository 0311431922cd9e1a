package engine

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Client is a caller that goes through a script.
type Client struct {
	Index  int
	Name   string
	Script Script
	// Pending is the number of its operation in flight in the truth, or -1.
	Pending int

	Setup   *Setup
	Run     *Run
	Witness *witness.Witness
	// Strategy is the instance that it asks.
	Strategy func() strategies.Strategy
	// Over reports whether the run was given up: then nothing is recorded any
	// more; nil if clients end by themselves.
	Over func() bool
	// Turn is called whenever a call of the strategy has returned, and waits until what
	// it was told may be written down; nil if one client runs at a time.
	Turn func()

	// Ends has it end with the first take that it does not get.
	Ends bool

	taken int // number of the last admitted take in the truth
	next  int // action that it is about to begin
}

// Perform goes through the script. pause, which is called between two actions,
// reports whether to go on.
func (c *Client) Perform(ctx context.Context, pause func() bool) {
	var reservation quota.Reservation
	held := false
	for i, action := range c.Script {
		if i > 0 {
			if !held && action.Kind.settles() {
				continue
			}
			// Others may act before the client goes on, also if it is about to give
			// back what it was just told it has.
			c.next = i
			if !pause() {
				return
			}
			if action.Kind.settles() && c.Run.Truth.ended(c.taken) {
				c.Run.Timeline.Say(codes.ToldTooLate, "too late to settle")
				held = false
				continue
			}
		}
		switch action.Kind {
		case Take:
			held = c.take(ctx, i, action.Units, &reservation)
			if !held && c.Ends {
				return
			}
		case Commit:
			c.commit(ctx, &reservation, action.Units)
		case Refund:
			c.refund(ctx, &reservation)
			held = false
		case Limit:
			c.limit(ctx, action.Units)
		}
	}
}

// request is that of an action.
func (c *Client) request(action int, units int64) quota.Request {
	req := quota.Request{
		ID: uint64(c.Index*MaxActions + action + 1), Subject: SubjectOf(c.Script[action].Other), Policy: c.Run.Truth.Policy,
		Units: units, Settles: c.Script.Settles(action),
	}
	if req.Settles {
		req.Life = c.Setup.Life
	}
	if c.Setup.NamesSecond {
		req.Second.Subject = req.Subject
		req.Second.Policy = c.Setup.Second
	}
	return req
}

// take asks for units, and reports whether reservation is now what was reserved.
func (c *Client) take(ctx context.Context, action int, units int64, reservation *quota.Reservation) bool {
	req := c.request(action, units)
	truth := &c.Run.Truth
	other := c.Script[action].Other
	c.Pending = truth.call(c.Index, oracle.Take, units, -1)
	truth.isOf(c.Pending, other)
	life := req.Life
	if !req.Settles {
		life = truth.Policy.Hold
	}
	truth.begins(c.Pending, life, req.Settles)
	decision, err := c.Strategy().Take(ctx, req)
	c.turn()
	if c.over() {
		return false
	}
	granted := int64(0)
	if err == nil {
		granted, err = decision.Units(units)
	}
	c.Witness.Taken(err)
	e := c.Pending
	c.Pending = -1
	switch {
	case err != nil:
		truth.reply(c.Index, e, oracle.Failed)
		c.Run.Timeline.Fail(err)
		return false
	case decision.Admitted:
		truth.grant(e, granted)
		truth.reply(c.Index, e, oracle.Admitted)
		c.taken = e
		c.Run.Timeline.Say(codes.ToldAdmitted,
			grantText(verdictText(codes.ToldAdmitted, decision, other), granted, units))
		*reservation = decision.Reservation
		req.Units = granted
		reservation.Request = req // strategies that settle nothing leave it out
		return true
	case decision.Degraded:
		truth.reply(c.Index, e, oracle.RejectedDegraded)
	default:
		truth.reply(c.Index, e, oracle.Rejected)
	}
	c.Run.Timeline.Say(codes.ToldRejected, verdictText(codes.ToldRejected, decision, other))
	return false
}

func verdictText(told codes.Told, decision quota.Decision, other int) string {
	text := string(told)
	if decision.Degraded {
		text += " without its store"
	}
	switch {
	case other == Many:
		text = "thousands of other subjects have asked once each"
	case other > 0:
		text = "subject " + string(SubjectOf(other)) + " " + text
	}
	return text
}

func grantText(text string, granted, asked int64) string {
	if granted < asked {
		return fmt.Sprintf("%s, %d of %d", text, granted, asked)
	}
	return text
}

// limit changes the limit, as an operator would. If it fails, or its caller dies, either
// limit may be in force from then on.
func (c *Client) limit(ctx context.Context, units int64) {
	truth := &c.Run.Truth
	truth.changes(units)
	if setter, ok := c.Strategy().(strategies.LimitSetter); ok {
		err := setter.SetLimit(ctx, truth.Policy, []quota.Subject{Subject})
		c.turn()
		if c.over() {
			return
		}
		if err != nil {
			c.Run.Timeline.Fail(err)
			return
		}
	}
	truth.changed()
	c.Run.Timeline.Say(codes.ToldLimitChanged, fmt.Sprintf("the limit is %d", units))
}

func (c *Client) commit(ctx context.Context, reservation *quota.Reservation, actual int64) {
	k, ok := c.Strategy().(strategies.Committer)
	if !ok {
		return
	}
	if actual == 0 {
		actual = reservation.Request.Units
	}
	c.Pending = c.Run.Truth.call(c.Index, oracle.Commit, reservation.Request.Units-actual, c.taken)
	err := k.Commit(ctx, *reservation, actual)
	c.turn()
	reservation.Committed = true
	c.settled(codes.ToldCommitted, err)
}

func (c *Client) refund(ctx context.Context, reservation *quota.Reservation) {
	k, ok := c.Strategy().(strategies.Refunder)
	if !ok {
		return
	}
	c.Pending = c.Run.Truth.call(c.Index, oracle.Refund, reservation.Request.Units, c.taken)
	err := k.Refund(ctx, *reservation)
	c.turn()
	if err != nil && !c.over() {
		c.Run.Timeline.Say(codes.ToldError, "error, and tries again")
		err = k.Refund(ctx, *reservation)
		c.turn()
	}
	c.settled(codes.ToldRefunded, err)
}

func (c *Client) turn() {
	if c.Turn != nil {
		c.Turn()
	}
}

func (c *Client) over() bool { return c.Over != nil && c.Over() }

func (c *Client) settled(told codes.Told, err error) {
	if c.over() {
		return
	}
	e := c.Pending
	c.Pending = -1
	if err != nil {
		c.Run.Truth.reply(c.Index, e, oracle.Failed)
		c.Run.Timeline.Fail(err)
		return
	}
	c.Run.Truth.reply(c.Index, e, oracle.Admitted)
	c.Run.Timeline.Say(told, string(told))
}

// Survives reports whether a client that is between two actions goes on if its instance
// ends: its next request is a new one. A settlement belongs to whoever was admitted, and is lost.
func (c *Client) Survives() bool { return !c.Script[c.next].Kind.settles() }

// Lose marks the operation in flight, if any, as one whose caller has died.
func (c *Client) Lose() {
	if c.Pending >= 0 {
		c.Run.Truth.reply(-1, c.Pending, oracle.Failed)
		c.Pending = -1
	}
}
