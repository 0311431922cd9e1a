package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/audit"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/stores"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	redisstore "github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/strategies"
)

func auditCommand() *cobra.Command {
	s := group.New(group.Own)
	var policy string
	var asJSON bool
	c := audit.Audit{Clock: clock.Wall{}, Most: 1000, Pause: 10 * time.Second}
	cmd := described("audit", &cobra.Command{
		Args:              needs(1, 1, "audit needs one strategy, and got %d"),
		ValidArgsFunction: group.CompleteStrategies,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := audited(cmd.Context(), c, s, args[0], policy)
			switch {
			case err != nil:
			case asJSON:
				err = encodeJSON(cmd.OutOrStdout(), r)
			default:
				err = audit.Text.Execute(cmd.OutOrStdout(), r)
			}
			switch {
			case err != nil:
				return session.InterruptedOr(cmd.Context(), err, ExitFailed)
			case r.Looked == 0:
				return fail(ExitFailed, errors.New("no subject was found: see --policy, --key and --query"))
			case len(r.Differences) > 0 || slices.ContainsFunc(r.Stores, func(s audit.Sum) bool { return s.Over > 0 }):
				return fail(ExitGate, errors.New("the stores disagree, or subjects are above their limit"))
			}
			return nil
		},
	})
	s.Set = settings.New(cmd, s.Stores("redis", "postgres"), []settings.Setting{
		{Name: "key", Title: settings.Stores, Value: settings.Text(&c.Key)},
		{Name: "query", Title: settings.Stores, Value: settings.Text(&c.Query)},
		{Name: "policy", Title: settings.What, Value: settings.Text(&policy), Complete: group.CompletePolicies},
		{Name: "most", Title: settings.What, Value: settings.Whole(&c.Most, 1, 1_000_000)},
		{Name: "wait", Title: settings.What, Value: settings.Span(&c.Pause, time.Hour)},
		jsonFlag(&asJSON, "write JSON"),
	})
	return cmd
}

// audited opens the stores and reads them.
func audited(ctx context.Context, a audit.Audit, s *group.Settings, name, policy string) (r audit.Report, err error) {
	all, err := strategies.Parse(name)
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("audit needs one strategy, and got %d", len(all))
	}
	if err == nil {
		a.Strategy = all[0]
		a.Policy, err = group.LookupPolicy(policy)
	}
	if err == nil {
		err = a.Strategy.ServesPolicy(&a.Policy)
	}
	if err != nil {
		return r, usagef("%w", err)
	}
	specs, err := ownServers(s)
	if err != nil {
		return r, err
	}
	for i := range specs {
		specs[i].Options.ReadOnly = true
	}
	set, err := stores.OpenSet(ctx, specs)
	if err != nil {
		return r, session.InterruptedOr(ctx, err, ExitUsage)
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	cache, _ := set.Get("redis")
	server, ok := cache.(*redisstore.Store)
	if !ok || server.Admin() == nil {
		return r, usagef("--redis: give the URL of your Redis, or of each master of a cluster by itself")
	}
	a.Redis = server.Admin()
	if table, ok := set.Get("postgres"); ok {
		if a.Postgres, err = table.(*pgstore.Store).Pool(ctx, pgstore.PoolOptions{Size: 1}); err != nil {
			return r, err
		}
		defer a.Postgres.Close()
	}
	return a.Run(ctx)
}
