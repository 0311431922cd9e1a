// Package oracle is the judge: from the answers to callers it works out the mistakes of
// a strategy. It reads no clock, and judging does no input or output; only
// a [History] that outgrows memory, and history files, touch the disk.
//
// # Truth
//
// Every operation took effect at one moment of its closed interval from call to
// reply; nothing more is known. Two operations are ordered only if one had
// replied strictly before the other was called. Admitted units are in use,
// rejected and failed requests hold nothing, and units given back are free from
// the call on, because the application has already let go of them. A reservation
// whose holder is gone holds nothing from its expiry on; the store may still hold
// it, so a rejection meanwhile is not wrong for certain.
//
// A refund, commit or expiry belongs to the window that its take was charged to.
// After the end of a tumbling window it changes nothing; under a rolling window it
// frees what its take still has in the window. After the end of a window that began with
// a request it is open whether it changes the window that is open then.
//
// Every figure is therefore an interval. What is certain holds for each way in
// which the operations may have been ordered; what is possible holds for at
// least one, or is a bound above all of them. [Judge] computes both from a
// complete history. [Cell] finds part of it while the run goes on, and [Agree]
// compares the two. [Expect] says what a counter must contain.
//
// # Leak
//
// Leak is counted in units: the fewest admitted units that would have to be
// taken away so that the rest can be placed within the limit. A request of 6
// units on top of 6 at a limit of 10 leaks 2, not 6: limits and the bounds that
// strategies declare are in units, and removing whole requests would make the
// figure a knapsack problem that depends on the mix of costs. For the same
// reason the units of one request that crosses a boundary may be placed in
// different windows; that can only lower the certain figure, and nothing changes
// for requests of one unit or requests that lie inside one window.
//
// Under a rolling window the certain leak is the largest sum of excesses of
// windows that do not overlap, or the number of requests that others before them
// have pushed behind their own replies, if that is more. It is the fewest units if
// requests of one unit come strictly one after the other. Otherwise it is a lower
// bound, which can be short if operations take about as long as the window.
//
// For a bucket, the certain leak is likewise the largest sum of excesses of
// stretches that do not overlap. The excess of one is the units taken in it for certain,
// less the units that the bucket holds and that flowed in. With whole units the leak can
// be one short.
//
// Windows that begin with their first request begin as uncertainly as that request
// took effect, and later ones more so, until a pause. Requests are placed among the
// windows that they can have met, and figures are bounds.
//
// If units are given back, the leak of a subject-window is the peak of what
// was in use above the limit: the same room can be taken twice in turn without
// anything having to go. [standing] tells how often and for how long.
//
// Units in use before the run ([Config].Initial) take up room but are never themselves
// leak.
//
// # Partial grants
//
// A request that was granted fewer units than it asked for is an admission of those
// and a second event, [Short], of the rest. That is a false reject if there was
// room for one unit more, by as many units as there was room for.
//
// # Histories
//
// A [History] keeps the events of a run of any length, in memory and beyond that
// in a file. [WriteHistory] keeps them for later, in the format that FORMAT.md
// describes; [OpenHistory] judges them again.
package oracle
