package tiered

import (
	"time"

	"github.com/quotabench/quotabench/quota"
)

// The values of the options, where code depends on them.
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
	Doc: "the Bloom filter grows by layers, as the record's does (scalable), or keeps the size it was made with (fixed)",
}

// optionSync is three-tier's alone, too.
var optionSync = quota.Option{
	Name: "sync", Default: syncLiteral, Values: []string{syncLiteral, "retry"},
	Doc: "the loop that rebuilds the filter ends for good at its first error (literal, the listing) or goes on (retry)",
}

var options = []quota.Option{
	{
		Name: "write", Default: writeBackMode, Values: []string{writeBackMode, writeThroughMode, writeLiteralMode},
		Doc: "a charge goes to Redis, then by a queue to PostgreSQL (back), to PostgreSQL, then Redis forgets (through), " +
			"or does all of it, as that listing stands (literal)",
	},
	{
		Name: "names", Default: "schema", Values: []string{"schema", "literal"},
		Doc: "columns and fields have the names of the record's schema (schema) or those that its listings put together " +
			"(literal), some of which do not exist",
	},
	{
		Name: "charge", Default: "after", Values: []string{"after", "before"},
		Doc: "work that takes time is charged when it is done (after), or on admission, and corrected when it is done (before)",
	},
	{
		Name: "ttl", Default: ttlAccess, Values: []string{ttlAccess, ttlCharge, "literal"},
		Doc: "the hash's hour to live begins anew with every check and charge (access, the prose), with charges alone " +
			"(charge), or on a miss only (literal, the listing)",
	},
	{
		Name: "lag", Type: "duration", Default: "5s", Min: "0s",
		Doc: "with write=back, how long after a charge the `time` comes at which its count goes to PostgreSQL",
	},
	{
		Name: "batch", Type: "int", Default: "1", Min: "1", Max: "10000",
		Doc: "with write=back, how many counts one job of the queue carries to PostgreSQL: one per charge is the record's",
	},
	{
		Name: "source", Default: "primary", Values: []string{"primary", fromReplica},
		Doc: "a miss in Redis asks the PostgreSQL that is written to (primary) or a replica of it, which lags behind (replica)",
	},
	{
		Name: "replica-lag", Type: "duration", Default: "100ms", Min: "0s",
		Doc: "with source=replica, by what `time` the replica of the model is behind; a real one is as late as it is",
	},
	{
		Name: "reset", Default: "none", Values: []string{"none", "job"},
		Doc: "nothing begins a new window (none, the record) or a job sets all counts to zero when one has ended (job)",
	},
	{
		Name: "down", Default: downProse, Values: []string{downProse, downUnified, downService},
		Doc: "without Redis PostgreSQL decides, without both all is admitted (prose), or the listing of the unified " +
			"check (unified) or of the service (service) to the letter",
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
		syncDies: o["sync"] == syncLiteral,
	}
	if o["names"] == "literal" {
		c.uses = &literalUses
	}
	return c
}
