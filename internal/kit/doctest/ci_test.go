package doctest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// step is one of a workflow or of an action.
type step struct {
	Uses, Run string
	With, Env map[string]string
}

func readYAML(t *testing.T, path string, into any) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(b)
}

// TestAction checks the action for users, its page, its script and our own workflow
// against each other.
func TestAction(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Description string }
		Runs   struct {
			Using string
			Steps []step
		}
	}
	text := readYAML(t, "../../../action.yml", &action)
	if action.Runs.Using != "composite" || len(action.Inputs) == 0 || len(action.Runs.Steps) == 0 {
		t.Fatalf("%+v", action)
	}
	for _, m := range regexp.MustCompile(`\$\{\{ *inputs\.([a-z-]+)`).FindAllStringSubmatch(text, -1) {
		if _, ok := action.Inputs[m[1]]; !ok {
			t.Errorf("the input %s is used and not declared", m[1])
		}
	}
	page, err := os.ReadFile("../../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range action.Inputs {
		if in.Description == "" || !strings.Contains(text, "inputs."+name+" ") {
			t.Errorf("the input %s has no description, or is not used", name)
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/ci.md does not name the input %s", name)
		}
	}
	script, err := os.ReadFile("../../../examples/ci/compare")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat("../../../examples/ci/compare"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the script cannot be executed: %v", err)
	}
	for _, s := range action.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("a step puts what others wrote into a script: %s", s.Run)
		}
		for name := range s.Env {
			if !strings.Contains(string(script)+s.Run, name) {
				t.Errorf("nothing reads %s", name)
			}
		}
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []step }
	}
	readYAML(t, "../../../.github/workflows/quotabench.yml", &workflow)
	ours := slices.DeleteFunc(slices.Clone(workflow.Jobs["compare"].Steps), func(s step) bool { return s.Uses != "./" })
	if len(ours) != 1 {
		t.Fatalf("our workflow uses the action %d times", len(ours))
	}
	for name := range ours[0].With {
		if _, ok := action.Inputs[name]; !ok {
			t.Errorf("our workflow gives %s, which is no input", name)
		}
	}
}
