package hardened

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	takeScript    = family.Script(files, "lua/take.lua")
	depositScript = family.Script(files, "lua/deposit.lua")
	clearScript   = family.Script(files, "lua/clear.lua")
	forgetScript  = family.Script(files, "lua/forget.lua")
	reclaimScript = family.Script(files, "lua/reclaim.lua")
)

// What the scripts answer first.
const (
	statusRejected int64 = iota
	statusAdmitted
	statusDraw
	statusBusy
	statusStale
	statusAgain
)

// answer is a script's.
type answer struct {
	status int64
	// credit that the account has now, and left of the database's units, or -1.
	credit, left int64
	// for how long a rejection may be repeated, or another draw may take.
	span time.Duration
}

// ask is what both scripts of a request are asked.
type ask struct {
	account
	units   int64
	token   string
	settles bool
	// lease is how long a rejection may be remembered.
	lease time.Duration
}

func (in *instance) take(ctx context.Context, a *ask) (answer, error) {
	return read(takeScript.Run(ctx, in.redis, []string{a.key(in.prefix)},
		a.units, a.token, drawPatience.Milliseconds(), a.expiry(), flag(a.settles), a.lease.Milliseconds(), a.limit))
}

// deposit ends a draw with what it got, and takes units of that. dry says for how long
// it is believed that the database has nothing left; 0 is that it has.
func (in *instance) deposit(ctx context.Context, a *ask, units int64, got drawn, dry time.Duration) (answer, error) {
	return read(depositScript.Run(ctx, in.redis, []string{a.key(in.prefix)},
		a.token, got.granted, flag(dry > 0), units, dry.Milliseconds(), flag(a.settles), a.limit, got.left))
}

func read(cmd *redis.Cmd) (answer, error) {
	n, err := family.Numbers(cmd, 4)
	if err != nil {
		return answer{}, err
	}
	return answer{n[0], n[1], n[2], time.Duration(n[3]) * time.Millisecond}, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
