package keep

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// The faults that can befall every kind of server that was started here.
const (
	Stopped     = "stopped"
	Restarted   = "restarted"
	nodeStopped = "node-stopped" // the first of several servers
)

// CanBreak implements [stores.Breakable].
func (c Common) CanBreak(_ context.Context, fault string) error {
	child, alone := c.self.Own.(*server.Child)
	_, several := c.self.Own.(server.Group)
	switch {
	case c.self.Own == nil || !c.self.Own.Local():
		return server.ErrNotOurs
	case fault == Stopped, fault == nodeStopped && several:
		return nil
	case fault != Restarted:
		return fmt.Errorf("there is no fault %s of %s", fault, c.self.Kind)
	case !alone || child == nil || c.self.Answers == nil:
		return fmt.Errorf("%s of this kind cannot be started again on its data", c.self.Kind)
	}
	return nil
}

// Break implements [stores.Breakable].
func (c Common) Break(ctx context.Context, fault string, _ stores.Scope) (mend func(context.Context) error, err error) {
	if err := c.CanBreak(ctx, fault); err != nil {
		return nil, err
	}
	if fault == Restarted {
		child := c.self.Own.(*server.Child)
		return func(ctx context.Context) error { return child.Again(ctx, c.self.Answers) }, child.Kill(ctx)
	}
	stopped := c.self.Own
	if fault == nodeStopped {
		stopped = stopped.(server.Group)[0]
	}
	all, err := stopped.Processes(ctx)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return server.Signal(all, false) }, server.Signal(all, true)
}
