package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A strategy that never returns, and one that panics, have the command exit with 3, one
// line about it and the stack in the record, while the other strategy is reported.
func TestAstray(t *testing.T) {
	newPlace(t, nil)
	hang := func() { select {} }
	for _, c := range []struct {
		name, code string
		at         *hook
		bad        func()
	}{
		{"hung", "did-not-return", &onBlue, hang},
		{"panics", "strategy-panicked", &onBlue, func() { panic("planted\npanic") }},
		{"hung-opening", "did-not-return", &onOpen, hang},
		{"hung-setting-up", "did-not-return", &onProvision, hang},
	} {
		c.at.set(c.bad)
		for mode, args := range map[string][]string{
			"run":     {"--rounds", "1", "--loop", "closed", "--requests", "400", "--workers", "2", "--redis", "embedded"},
			"sim":     {"--requests", "400"},
			"explore": nil,
		} {
			dir := c.name + "-" + mode
			o := call(t.Context(), append([]string{mode, "honest:color=blue", "honest", "--decision-timeout", "50ms", "--out", dir}, args...)...)
			last := o.stderr[strings.LastIndex(strings.TrimSpace(o.stderr), "\n")+1:]
			if o.code != ExitFailed || !strings.Contains(last, "honest:color=blue") || strings.Contains(o.stdout+o.stderr, "goroutine ") {
				t.Errorf("%s %s: exit %d, %s%s", mode, c.name, o.code, o.stdout, o.stderr)
			}
			if mode != "explore" && (!strings.Contains(last, c.code) || !strings.Contains(o.stdout, "INVALID "+c.code)) {
				t.Errorf("%s %s: no %s in %s%s", mode, c.name, c.code, o.stdout, o.stderr)
			}
			file := map[bool]string{true: explorationFile, false: "results.json"}[mode == "explore"]
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !strings.Contains(string(b), "astray_test.go") || !strings.Contains(string(b), `"stack": "goroutine `) {
				t.Errorf("%s %s: %v, no stack in\n%s", mode, c.name, err, b)
			}
			if n := strings.Count(o.stdout, "honest"); n < 1 {
				t.Errorf("%s %s: the other strategy is not reported: %s", mode, c.name, o.stdout)
			}
		}
		c.at.clear()
	}
}
