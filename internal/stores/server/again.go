package server

import (
	"context"
	"os/exec"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine/cores"
)

// Kill ends the process and its descendants at once, as a machine ends that fails. Its directory stays, for [Child.Again].
func (c *Child) Kill(ctx context.Context) error {
	all, err := c.Processes(ctx)
	if err != nil {
		return err
	}
	c.kept, _ = cores.AllowedTo(c.PID())
	for _, pid := range all {
		kill(pid)
	}
	<-c.Done()
	for _, pid := range all { // what holds memory of the one before keeps PostgreSQL from starting
		for _, gone := ProcessIdentity(pid); gone == nil; _, gone = ProcessIdentity(pid) {
			if err := (clock.Wall{}).Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// Again starts the command of a process that was killed once more, in the same directory and on the same cores,
// and asks it until it answers.
func (c *Child) Again(ctx context.Context, try func(context.Context) error) error {
	old := c.run.Load().cmd
	cmd := &exec.Cmd{Path: old.Path, Args: old.Args, Dir: old.Dir, Env: old.Env, SysProcAttr: old.SysProcAttr}
	log, err := c.dir.log()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	done, _, err := launch(cmd, false)
	if err != nil {
		return err
	}
	c.run.Store(&running{cmd, done})
	if len(c.kept) > 0 {
		_ = cores.Confine(cmd.Process.Pid, c.kept) // or it has ended, as what follows tells
	}
	if err := c.dir.record(cmd.Process.Pid); err != nil && !c.Ended() {
		return err
	}
	return Await(ctx, c, func(string) bool { return false }, try)
}
