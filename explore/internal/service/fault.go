package service

import (
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/proxy"
)

// crash kills the client's instance, and with it its clients. What the instance has sent besides
// the command, as the rest of a pipeline, has left it and takes effect.
func (w *Engine) crash(c *client) error {
	rest := slices.DeleteFunc(c.instance.proxy.Held(), func(cmd *proxy.Command) bool { return cmd == c.held })
	if len(rest) > 0 {
		c.told("after it had sent: "+w.textOf(rest...), "")
	}
	err := c.instance.child.Close()
	c.instance.child = nil
	c.instance.proxy.Drain(w.Setup.Patience)
	err = errors.Join(err, c.instance.end())
	for _, client := range append(c.among(), c) {
		if !client.over() && client.at != ended {
			client.Lose()
			client.leave()
			client.at = ended
			client.held = nil
		}
	}
	return err
}

// outageTime is how long a store cannot be reached, at most. Client libraries connect again a few times, go-redis for
// two seconds, before they tell their caller.
const outageTime = 2500 * time.Millisecond

// away has a client's command not reach its store, nor any other one of its instance until the request is answered or
// the outage has lasted long enough.
func (w *Engine) away(c *client) error {
	between := c.held.Door()
	c.held.Fail()
	between.Refuse(true)
	back := time.AfterFunc(outageTime, func() { between.Refuse(false) })
	err := w.wait(c)
	back.Stop()
	between.Refuse(false)
	return err
}

// befallsStore has time pass, or Redis lose something.
func (w *Engine) befallsStore(pick engine.Choice) error {
	if pick.Kind == engine.TickClock {
		next, _ := w.Deadline(pick.ID)
		ticked := w.Ticking()
		w.lingers = pick.ID == engine.TickLast
		err := w.moves(next)
		ticked(engine.TickTexts[pick.ID])
		return err
	}
	w.Inject(pick)
	if pick.Kind == engine.EvictKey {
		i := slices.IndexFunc(w.held, func(holding engine.Holding) bool { return w.plain(holding.Name) == pick.Key })
		return w.cmd.Redis.Unlink(w.base, w.held[i].Name).Err()
	}
	if !w.lost {
		w.lost, w.scripts = true, w.loaded()
	}
	if pick.Kind == engine.DropScript {
		return w.cmd.Redis.ScriptFlush(w.base).Err()
	}
	for _, instance := range w.instances {
		instance.proxy.Cut()
	}
	errs := []error{w.cmd.Redis.FlushDB(w.base).Err(), w.cmd.Redis.ScriptFlush(w.base).Err()}
	for _, client := range w.callers {
		if client.held != nil {
			errs = append(errs, w.wait(client))
		}
	}
	return errors.Join(errs...)
}

// checkTimeout sees whether an instance gives up a command that has no reply.
func (w *Engine) checkTimeout() error {
	if err := w.begin(); err != nil {
		return errors.Join(err, w.End())
	}
	var err error
	for client := w.callers[0]; err == nil && !client.sent; {
		err = w.Step(engine.Choice{Kind: engine.StepActor})
	}
	if err == nil {
		err = w.Step(engine.Choice{Kind: engine.DelayReply})
	}
	if err == nil && w.outwaited {
		err = unfit("the service waits for a reply of Redis for %v or longer: give its client of Redis a shorter timeout, "+
			"or leave the fault %s out", w.Setup.Patience, engine.FaultTimeout)
	}
	return errors.Join(err, w.End())
}

// restore has instances load again what Redis has lost: by a request, or if that is not enough by starting anew.
func (w *Engine) restore() error {
	loaded := len(w.kept) == 0
	for _, instance := range w.instances {
		loaded = loaded && instance.child != nil
		if loaded {
			wrong, _ := w.greet(w.base, instance)
			loaded = wrong == nil
		}
	}
	w.seen = false
	if err := w.stored(); err != nil { // by a script
		return err
	}
	w.lost = false
	if n := w.loaded(); loaded && n != "" && n == w.scripts {
		return nil
	}
	var errs []error
	for _, instance := range w.instances {
		errs = append(errs, instance.end())
	}
	return errors.Join(errs...)
}

// loaded is how many scripts Redis has; empty if it does not say.
func (w *Engine) loaded() string {
	info, _ := w.cmd.Redis.InfoMap(w.base, "memory").Result()
	return info["Memory"]["number_of_cached_scripts"]
}
