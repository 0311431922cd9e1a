package stores_test

import (
	"os/exec"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestDriversNeedNoContainerEngine holds what a program links in that uses the
// stores without containers, and a test with storetest.
func TestDriversNeedNoContainerEngine(t *testing.T) {
	const module = "github.com/quotabench/quotabench/stores"
	deps := func(packages ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	without := deps(module, module+"/redis", module+"/postgres",
		"github.com/quotabench/quotabench/internal/stores/storetest")
	for _, other := range []string{"testcontainers", "moby", "docker", "gonum", "cobra"} {
		if strings.Contains(without, other) {
			t.Errorf("they need a package of %s", other)
		}
	}
	if !strings.Contains(deps(module+"/all"), "testcontainers") {
		t.Error("stores/all has no containers: this test does not see what it looks for")
	}
	vocabulary := deps(module)
	for _, client := range []string{"go-redis", "pgx", "miniredis"} {
		if strings.Contains(vocabulary, client) {
			t.Errorf("package stores needs the client %s", client)
		}
	}
}
