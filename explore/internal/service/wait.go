package service

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/scripts"
	"github.com/quotabench/quotabench/internal/proxy"
)

// Quiet is how long nothing comes of an instance until a client of it is taken to wait for another one, e.g. for a lock
// in its process. It then goes on in a step of that one.
var Quiet = 100 * time.Millisecond

// shares reports whether the instance has other clients, too.
func (c *client) shares() bool { return c.engine.Setup.Members(c.instance.index) > 1 }

// among are the other clients of the instance.
func (c *client) among() (out []*client) {
	for _, client := range c.engine.callers {
		if client != c && client.instance == c.instance {
			out = append(out, client)
		}
	}
	return out
}

// waits reports whether the client waits for another one of its instance.
func (c *client) waits() bool {
	return c.begun && c.at == running && c.held == nil && c.stuck == "" && len(c.stops) == 0
}

// ready reports whether the client can take a step. A command cannot take effect before those of other clients that
// have come by the same connection before it.
func (c *client) ready() bool {
	switch {
	case c.stuck != "" || c.flies || c.at == ended:
		return false
	case !c.begun || c.at == paused:
		return true
	case c.held == nil:
		return len(c.stops) > 0
	}
	return c.sent || !c.shares() || c.held.First()
}

// wait waits until a client's instance has sent its next command, or has answered and the client has come to its next
// stop. Nobody else does anything meanwhile, except other clients of the instance that have waited.
//
// Which request of an instance a command belongs to cannot be seen: it is taken for one of the client whose step it
// comes in.
func (w *Engine) wait(c *client) error {
	err := w.await(c, true)
	for _, client := range c.among() {
		if err == nil && client.waits() {
			err = w.await(client, false)
		}
	}
	return err
}

// await waits for one client. It takes in that it was answered in a step of its own only.
func (w *Engine) await(c *client, own bool) error {
	c.held = nil
	c.sent = false
	patience := w.Setup.Patience
	if c.blocked() {
		patience = Quiet
	}
	w.timer.Reset(patience)
	defer w.timer.Stop()
	for {
		for len(c.stops) > 0 {
			if c.stopped(<-c.stops, own) {
				return nil
			}
		}
		if next := c.next(); c.asks && next != nil {
			if !c.answersFirst() && c.faces(next) {
				return nil
			}
			continue
		}
		if c.late != nil && c.late.Overtaken() { // by a client that goes on with the same connection
			c.answerLate()
			continue
		}
		select {
		case why := <-c.stops:
			if c.stopped(why, own) {
				return nil
			}
		case <-c.instance.proxy.Changed():
		case <-c.instance.child.Done():
			return w.misbehaves("the service ends in the middle of a request: %s",
				c.instance.saying(fmt.Sprintf("instance %d has ended", c.instance.index)))
		case <-w.timer.C:
			if c.late != nil {
				w.outwaited = true
				c.answerLate()
				w.timer.Reset(w.Setup.Patience)
				continue
			}
			if patience != Quiet {
				c.stuck = fmt.Sprintf("%s gets no answer within %v, and its instance sends no command", c.Name, w.Setup.Patience)
			}
			return nil
		case <-w.base.Done():
			return w.base.Err()
		}
	}
}

// answerLate lets the reply that was held back arrive.
func (c *client) answerLate() {
	c.late.Answer()
	c.late = nil
}

// blocked reports whether the client may wait for another one of its instance, which can go on.
func (c *client) blocked() bool {
	return slices.ContainsFunc(c.among(), func(o *client) bool { return o.begun && o.at == running && o.ready() })
}

// next is the first command that the instance has sent and no client faces; nil if there is none.
func (c *client) next() *proxy.Command {
	others := c.among()
	for _, cmd := range c.instance.proxy.Held() {
		if !slices.ContainsFunc(others, func(o *client) bool { return o.held == cmd }) {
			return cmd
		}
	}
	return nil
}

// stopped notes why a client has stopped, and reports whether it stands still.
func (c *client) stopped(why stop, own bool) bool {
	if why == answered && !own {
		c.stops <- why
		return true
	}
	c.asks = why == asking
	switch why {
	case asking:
		c.asked = c.commands
		return false
	case answered:
		c.engine.Run.Silent = c.engine.Run.Silent || c.commands == c.asked
		c.noteAfterAnswer()
		// what its instance sends from now on is of no client
		if !slices.ContainsFunc(c.among(), func(o *client) bool { return o.asks }) {
			c.instance.proxy.Hold(false)
		}
		c.resume <- struct{}{}
		return false
	}
	c.at = why
	return true
}

// faces has a client stand before a command, and reports whether it does: those of an earlier run pass if they can.
func (c *client) faces(cmd *proxy.Command) bool {
	c.text = c.engine.textOf(cmd)
	if c.engine.earlier(words(cmd)...) && cmd.First() {
		_, _ = cmd.Send() // whoever waits for the reply has its answer
		cmd.Answer()
		return false
	}
	c.held = cmd
	c.store = cmd.Store()
	if c.engine.sql != nil && cmd.Session() != 0 {
		c.engine.sql.owners[cmd.Session()] = c
	}
	c.engine.seesClock(cmd)
	c.engine.commands++
	c.commands++
	if c.commands > mostCommands {
		c.stuck = fmt.Sprintf("%s sends commands without end, and gets no answer: %s", c.Name, c.text)
	}
	return true
}

// words are those of a command, or of all commands of a transaction, as they were sent.
func words(cmd *proxy.Command) []string { return slices.Concat(cmd.Parts()...) }

// textOf is commands on one line, for people. Nothing may be looked up in it: long words are shortened.
func (w *Engine) textOf(commands ...*proxy.Command) string {
	var parts []string
	for _, cmd := range commands {
		for _, words := range cmd.Parts() {
			if cmd.Store() == postgresStore {
				parts = append(parts, format.Shorten(format.OneLine(w.plain(words[0])), mostStatement))
				continue
			}
			parts = append(parts, w.commandText(words))
		}
	}
	return strings.Join(parts, "; ")
}

// mostText bounds a word of a command, e.g. a script, in a timeline, and mostStatement a statement.
const (
	mostText      = 40
	mostStatement = 200
)

// commandText is a command on one line. The subject gets its name in records before a word is shortened, which may cut
// it in two.
func (w *Engine) commandText(words []string) string {
	out := make([]string, len(words))
	script := -1
	switch name := strings.ToLower(words[0]); {
	case strings.HasPrefix(name, "eval"):
		script = 1
	case name == "script" && len(words) > 2 && strings.EqualFold(words[1], "load"):
		script = 2
	}
	for i, word := range words {
		if i == script {
			word = scripts.Argument(words[0], word)
		}
		out[i] = format.Shorten(format.OneLine(w.plain(word)), mostText)
	}
	out[0] = strings.ToLower(out[0])
	return strings.Join(out, " ")
}
