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
var optionFilter = quota.Option{
	Name: "filter", Default: "scalable", Values: []string{"scalable", "fixed"},
	Doc: "the Bloom filter grows by layers, as in the record, or has a fixed size",
}

// optionSync is three-tier's alone, too.
var optionSync = quota.Option{
	Name: "sync", Default: syncLiteral, Values: []string{syncLiteral, "retry"},
	Doc: "the loop that rebuilds the filter ends at its first error (literal, the listing) or continues (retry)",
}

// optionRebuild is three-tier's alone, as well.
var optionRebuild = quota.Option{
	Name: "rebuild", Type: "duration", Default: "5m", Min: "1ms",
	Doc: "`time` between rebuilds of the filter",
}

var options = []quota.Option{
	{
		Name: "write", Default: writeBackMode, Values: []string{writeBackMode, writeThroughMode, writeLiteralMode},
		Doc: "a charge goes to Redis, then by a queue to PostgreSQL (back); to PostgreSQL, then Redis forgets (through); or " +
			"both, as in the listing (literal)",
	},
	{
		Name: "names", Default: "schema", Values: []string{"schema", "literal"},
		Doc: "column and field names: of the record's schema, or of its listings (literal), of which some do not exist",
	},
	{
		Name: "charge", Default: "after", Values: []string{"after", "before"},
		Doc: "work is charged when it is done (after), or on admission with a correction when it is done (before)",
	},
	{
		Name: "ttl", Default: ttlAccess, Values: []string{ttlAccess, ttlCharge, "literal"},
		Doc: "the hash's hour to live restarts with every check and charge (access, the prose), by an EXPIRE each; with charges " +
			"(charge); or on a miss (literal, the listing)",
	},
	{
		Name: "lag", Type: "duration", Default: "5s", Min: "0s",
		Doc: "with write=back, `time` from a charge to its write to PostgreSQL",
	},
	{
		Name: "batch", Type: "int", Default: "1", Min: "1", Max: "10000",
		Doc: "with write=back, counts per job of the queue; the record has one",
	},
	{
		Name: "source", Default: "primary", Values: []string{"primary", fromReplica},
		Doc: "the PostgreSQL that a miss in Redis asks; a replica lags",
	},
	{
		Name: "replica-lag", Type: "duration", Default: "100ms", Min: "0s",
		Doc: "with source=replica, `time` that the modelled replica is behind",
	},
	{
		Name: "reset", Default: "none", Values: []string{"none", "job"},
		Doc: "nothing begins a new window (none, the record), or a job sets all counts to zero (job)",
	},
	{
		Name: "reconcile", Type: "duration", Default: "0s", Min: "0s",
		Doc: "`time` between rounds of a job that overwrites Redis' counts and limits with PostgreSQL's (the prose: 5s); 0s: no job",
	},
	{
		Name: "down", Default: downProse, Values: []string{downProse, downUnified, downService},
		Doc: "prose: PostgreSQL decides without Redis, and all is admitted without both; unified, service: as in the listing of that name",
	},
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

func configure(o quota.Options) config {
	c := config{
		write: o["write"], down: o["down"], uses: &schemaUses,
		chargeFirst:     o["charge"] == "before",
		accessRefreshes: o["ttl"] == ttlAccess,
		chargeRefreshes: o["ttl"] == ttlAccess || o["ttl"] == ttlCharge,
		lag:             o.Duration("lag"), batch: int(o.Int("batch")),
		reconciles: o.Duration("reconcile"), syncDies: o["sync"] == syncLiteral,
	}
	if o["names"] == "literal" {
		c.uses = &literalUses
	}
	return c
}
