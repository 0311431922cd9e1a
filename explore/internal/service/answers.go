package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/proxy"
)

// ErrAfterAnswer says that a service sends commands that its answer does not wait for.
var ErrAfterAnswer = errors.New("it sends commands that its answer does not wait for")

// AnswerTime is how long the first control waits for the answer to a request while a command of it is held, and for
// commands after the answer.
var AnswerTime = 100 * time.Millisecond

// watchedControl runs the control for the first time, and sees whether an instance answers before it has sent all
// commands of a request, or before it has their replies. When such a command takes effect is for the machine to say,
// and no choice of a schedule.
func (w *Engine) watchedControl() (answers []string, err error) {
	w.watches = !w.cmd.Known
	answers, err = w.inTurn()
	w.watches = false
	if w.afterAnswer == "" {
		return answers, err
	}
	w.told = true
	return nil, fmt.Errorf("%w: %s: when it takes effect is not seen, so nothing may be claimed", ErrAfterAnswer,
		w.afterAnswer)
}

// answersFirst reports whether the answer to a client's request comes without the command that is held, if that is
// looked for.
func (c *client) answersFirst() bool {
	if !c.engine.watches {
		return false
	}
	for deadline := wall.Now().Add(AnswerTime); wall.Now().Before(deadline); time.Sleep(AnswerTime / 20) {
		if len(c.stops) > 0 {
			return true
		}
	}
	return false
}

// noteAfterAnswer notes what an instance has sent by the time of an answer and has no reply to, or sends after it, if
// that is looked for.
func (c *client) noteAfterAnswer() {
	if !c.engine.watches {
		return
	}
	time.Sleep(AnswerTime)
	late := slices.DeleteFunc(c.instance.proxy.Held(), func(cmd *proxy.Command) bool {
		return !c.engine.names(cmd) || deadlinesOnly(cmd)
	})
	if len(late) > 0 {
		c.engine.afterAnswer = c.engine.textOf(late...)
	}
}

// deadlinesOnly reports whether a command sets deadlines and nothing else: whoever does not wait for that is admitted
// as one who does.
func deadlinesOnly(cmd *proxy.Command) bool {
	return !slices.ContainsFunc(cmd.Parts(), func(words []string) bool {
		return !slices.Contains([]string{"expire", "pexpire", "expireat", "pexpireat"}, strings.ToLower(words[0]))
	})
}

// names reports whether a command is about the subject of this run.
func (w *Engine) names(cmd *proxy.Command) bool {
	return slices.ContainsFunc(words(cmd), func(word string) bool { return w.plain(word) != word })
}
