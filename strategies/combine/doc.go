// Package combine holds the strategy "combine": group commit for a counter in Redis.
// Callers of one instance who ask for the same subject at the same time share one call of
// a script, which answers each of them by itself.
//
// One call for a subject is under way at a time. Who comes meanwhile waits, and the first
// of those who wait sends the next call for all of them. There is no timer and no
// goroutine: a caller who is alone asks at once, and a busier subject has larger batches.
//
// A caller whose context ends leaves at once with the context's error:
//
//   - Before its batch is sent, nothing is charged for it. If it was its turn to send, the
//     next one who waits does.
//   - After that, the batch goes on for the others, and what is charged for the caller who
//     left stays charged. To give it back would take one more command, which can get lost
//     itself or reach Redis after the window, so that no promise could be based on it. It
//     is what a caller leaves behind who gives up on a script of its own, too.
//   - The caller who sends a batch with others in it stays until the reply. Its context
//     does not end the call, which ends by the client's timeout, or at the latest of the
//     batch's deadlines if all contexts have one.
package combine

import (
	"embed"

	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

func init() { family.Register(files, meta) }
