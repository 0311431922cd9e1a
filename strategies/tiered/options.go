package tiered

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// The values of the options on which code depends.
const (
	writeBackMode    = "back"
	writeThroughMode = "through"
	writeLiteralMode = "literal"

	downProse   = "prose"
	downUnified = "unified"
	downService = "service"

	ttlAccess = "access"
	ttlCharge = "charge"

	syncLiteral = "literal"

	fromReplica = "replica"
)

// optionFilter is three-tier's alone; the others are of both strategies.
var optionFilter = quota.Option{Name: "filter", Default: "scalable", Values: []string{"scalable", "fixed"}}

// optionSync is three-tier's alone, too.
var optionSync = quota.Option{Name: "sync", Default: syncLiteral, Values: []string{syncLiteral, "retry"}}

// optionRebuild is three-tier's alone, as well.
var optionRebuild = quota.Option{Name: "rebuild", Type: "duration", Default: "5m", Min: "1ms"}

var options = []quota.Option{
	{Name: "write", Default: writeBackMode, Values: []string{writeBackMode, writeThroughMode, writeLiteralMode}},
	{Name: "names", Default: "schema", Values: []string{"schema", "literal"}},
	{Name: "charge", Default: "after", Values: []string{"after", "before"}},
	{Name: "ttl", Default: ttlAccess, Values: []string{ttlAccess, ttlCharge, "literal"}},
	{Name: "lag", Type: "duration", Default: "5s", Min: "0s"},
	{Name: "batch", Type: "int", Default: "1", Min: "1", Max: "10000"},
	{Name: "source", Default: "primary", Values: []string{"primary", fromReplica}},
	{Name: "replica-lag", Type: "duration", Default: "100ms", Min: "0s"},
	{Name: "reset", Default: "none", Values: []string{"none", "job"}},
	{Name: "reconcile", Type: "duration", Default: "0s", Min: "0s"},
	{Name: "down", Default: downProse, Values: []string{downProse, downUnified, downService}},
}

// config is what the options say.
type config struct {
	write string
	down  string
	uses  *[useCount]use
	// chargeFirst makes a failing charge fail its request.
	chargeFirst bool
	// accessRefreshes and chargeRefreshes say what gives the hash its hour anew.
	accessRefreshes, chargeRefreshes bool
	// lag is the delay of a write-back, batch how many go together.
	lag   time.Duration
	batch int
	// reconciles is the period of the job that overwrites the cache; 0 is none.
	reconciles time.Duration
	// syncDies ends the filter's loop at its first error.
	syncDies bool
}

func configure(options quota.Options) config {
	c := config{
		write: options["write"], down: options["down"], uses: &schemaUses,
		chargeFirst:     options["charge"] == "before",
		accessRefreshes: options["ttl"] == ttlAccess,
		chargeRefreshes: options["ttl"] == ttlAccess || options["ttl"] == ttlCharge,
		lag:             options.Duration("lag"), batch: int(options.Int("batch")),
		reconciles: options.Duration("reconcile"), syncDies: options["sync"] == syncLiteral,
	}
	if options["names"] == "literal" {
		c.uses = &literalUses
	}
	return c
}
