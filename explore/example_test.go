package explore_test

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/strategies"
)

// A team's own limiter is explored the same way, by its own [strategies.Meta].
func ExampleRun() {
	meta, err := strategies.Lookup("check-then-set")
	if err != nil {
		panic(err)
	}
	sel, err := meta.Select(nil)
	if err != nil {
		panic(err)
	}
	res, err := explore.Run(context.Background(), sel, explore.Config{Clients: 2})
	if err != nil {
		panic(err)
	}
	leak := res.Found(explore.Leak)
	fmt.Println(leak.Detail)
	for _, s := range leak.Steps {
		fmt.Println(s.Actor, s.Command)
	}
	// Output:
	// 2 requests in use, the limit is 1
	// A GET quota:agent-api:s:used
	// B GET quota:agent-api:s:used
	// A SET quota:agent-api:s:used 1
	// B SET quota:agent-api:s:used 1
}
