package quota

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"agent-api", "agent-spend", "login", "out"}
	for name, want := range map[string]string{
		"agent_api": "agent-api", "Login": "login", "lgoin": "login", "": "", "o": "", "nonsense": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if d := edits("kitten", "sitting"); d != 3 {
		t.Errorf("kitten and sitting are %d apart, want 3", d)
	}
}

func TestUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"logon":  `unknown policy "logon": did you mean login? It is one of agent-api, login, or all`,
		"nearby": `unknown policy "nearby": one of agent-api, login, or all`,
	} {
		if got := Unknown("policy", name, []string{"agent-api", "login"}, ", or all").Error(); got != want ||
			strings.Contains(got, "\n") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
