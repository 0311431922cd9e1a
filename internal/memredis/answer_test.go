package memredis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// What a plain script answers at once is what its reply would be, and what needs the Lua
// machine is left to the client: a script there may never end.
func TestAnswerOfScripts(t *testing.T) {
	for _, source := range plainScripts {
		source, machine := strings.CutPrefix(source, "!")
		for _, stored := range []string{"", "5", "text"} {
			for _, args := range [][]any{
				{2, "k", "l", "5", 2}, {2, "k", "l", -1, int64(10)}, {2, "k", "l", "", "x"}, {0, "get", "b"}, {9, "k"}, {"x"}, {},
			} {
				var got [2]string
				for i := range got {
					table := New()
					if stored != "" {
						table.Do([]string{"set", "k", stored})
					}
					if _, _, err := table.load(source); err != nil {
						t.Fatalf("%s: %v", source, err)
					}
					cmd := redis.NewCmd(t.Context(), append([]any{"evalsha", SHA1(source)}, args...)...)
					var carried Trace
					table.Trace(&carried)
					ask := table.Process
					if i == 1 {
						ask = table.Answer
					}
					err, ok := ask(cmd)
					if i == 1 && ok == machine {
						t.Errorf("%s: answered at once: %v", source, ok)
					}
					if i == 1 && machine {
						if carried != (Trace{}) {
							t.Errorf("%s: left to the client, and carried out", source)
						}
						got[1] = got[0]
						continue
					}
					got[i] = fmt.Sprintf("%#v, %v, %v, then %v %v, unknown %q", cmd.Val(), cmd.Err(), err,
						table.Do([]string{"get", "k"}), table.Do([]string{"get", "l"}), table.Unknown())
					table.Close()
				}
				if got[0] != got[1] {
					t.Errorf("%s with %q and %v:\n%s, at once\n%s", source, stored, args, got[0], got[1])
				}
			}
		}
	}
	table := New()
	defer table.Close()
	for _, args := range [][]any{{"evalsha", "unknown", 0}, {"eval", "return 1", 0}, {"evalsha"}, {}} {
		if err, ok := table.Answer(redis.NewCmd(t.Context(), args...)); ok {
			t.Errorf("%v is answered at once: %v", args, err)
		}
	}
}
