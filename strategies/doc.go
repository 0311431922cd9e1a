// Package strategies is the contract between a quota strategy and everything
// that runs one, and the registry of strategies.
//
// A strategy is a [Meta], which is data, and an Open function that makes one
// application instance of it. The same code is measured on real stores,
// simulated in virtual time and explored under every interleaving; for that it
// takes all time from [Env.Clock], all randomness from [Env.Rand], reaches its
// stores with the context it was given, and starts no goroutine: background
// work is handed over as [Job]s.
//
// Capabilities beyond deciding are optional interfaces, found by assertion:
// [Refunder], [Committer], [Viewer], [Screener], [Provisioner], [Jobber] and
// [Meter]. [FromFunc] adapts limiters that have a method Allow(ctx, key).
package strategies
