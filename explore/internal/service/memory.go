package service

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/proxy"
)

// emptyRedis starts a Redis in this process if there is none, whose clock stands unless it is moved, and refuses a
// database with keys, since those of a run are removed after it. It returns what Redis calls itself.
func (w *Engine) emptyRedis() (version string, err error) {
	if w.cmd.Redis == nil {
		m, err := miniredis.Run()
		if err != nil {
			return "", fmt.Errorf("start a Redis in memory: %w", err)
		}
		w.memory = m
		w.lua = fakeredis.NewScripts(m)
		m.Server().SetPreHook(w.lua.Take)
		w.cmd.Redis = redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2})
	}
	n, err := w.cmd.Redis.DBSize(w.base).Result()
	if err != nil {
		return "", fmt.Errorf("reach Redis: %w", err)
	}
	if n > 0 && w.cmd.Known { // an earlier search has removed its own
		return "", fmt.Errorf("the database of --redis holds %d keys that came after the searches before this one", n)
	}
	if n > 0 {
		return "", unfit("the database of --redis holds %d keys, and a search removes the keys of its schedules: give an "+
			"empty one", n)
	}
	info, err := w.cmd.Redis.InfoMap(w.base, "server").Result()
	if err != nil {
		return "a Redis in memory", nil // which has no such section
	}
	return "Redis " + info["Server"]["redis_version"], nil
}

// moves has Redis tell a moment, and the clocks of instances that do not go by themselves, each with its skew. If it is
// an earlier one, Redis is empty.
func (w *Engine) moves(now time.Time) error {
	duration := now.Sub(w.now)
	w.now = now
	w.seen = false
	if w.memory == nil {
		return nil
	}
	if duration < 0 {
		w.memory.FlushAll()
		w.lost = w.lost || len(w.kept) > 0
	}
	if w.lingers {
		duration -= fakeredis.Lingering
		w.lingers = false
	}
	w.memory.SetTime(now)
	w.memory.FastForward(max(0, duration))
	var errs []error
	for _, instance := range w.instances {
		if instance.child != nil {
			errs = append(errs, w.setClock(instance))
		}
	}
	return errors.Join(errs...)
}

// setClock writes the file by which libfaketime knows the moment, if clocks can be moved. It cuts off what it reads, so
// that a whole millisecond needs a little more.
func (w *Engine) setClock(in *instance) error {
	if !w.follows() {
		return nil
	}
	text := w.now.Local().Add(w.Setup.SkewOf(in.index) + 500*time.Nanosecond).Format(ClockLayout + ".0000000")
	next := in.clock + ".new" // since it may be read at any moment
	return cmp.Or(os.WriteFile(next, []byte(text+"\n"), 0o600), os.Rename(next, in.clock))
}

// follows reports whether the clocks of instances are moved with that of Redis.
func (w *Engine) follows() bool { return !w.cmd.Clock.IsZero() && w.Setup.Ticks() }

// lacks notes that the Redis in memory does not have a command, which a server may have.
func (w *Engine) lacks(cmd *proxy.Command) {
	if w.memory != nil && w.Err == nil && lacking.Match(cmd.Reply()) {
		w.Err = w.misbehaves("the service sends what the Redis in memory does not have: %s; leave --redis embedded out",
			w.textOf(cmd))
	}
}

// lacking is the answer to an unknown command, also of a script, as Redis sends it.
var lacking = regexp.MustCompile(`(?i)^-.*unknown (redis )?command`)

// seesClock notes that an instance sends the time of its own clock, which is not moved although that of Redis is.
func (w *Engine) seesClock(cmd *proxy.Command) {
	if !w.Setup.Ticks() || w.follows() {
		return
	}
	for _, words := range cmd.Parts() {
		args := make([]any, len(words))
		for i, word := range words {
			args[i] = word
		}
		w.Witness.Command(w.base, words[0], args)
	}
	if w.Witness.Noted(witness.WallClock) && w.Err == nil {
		w.Err = w.misbehaves("the service sends the time of its own clock, which does not move with that of Redis: give " +
			"--service-clock, which has it moved, or leave out what has time pass")
	}
}
