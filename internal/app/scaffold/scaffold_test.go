package scaffold

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func written(t *testing.T, from Source) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "limits")
	if _, err := Write(dir, from); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestWrite: of a published version nothing is replaced or cloned, and of a clone both.
func TestWrite(t *testing.T) {
	for _, c := range []struct {
		from         Source
		module, flow string
	}{
		{Source{Version: "v1.2.3"}, "require github.com/quotabench/quotabench v1.2.3\n",
			"uses: quotabench/quotabench@v1.2.3 "},
		{Source{Version: "v0.1.1-0.20261125140000-0123456789ab"}, "v0.1.1-0.20261125140000-0123456789ab\n",
			"uses: quotabench/quotabench@main "},
		{Source{Replace: "../q b"}, `replace github.com/quotabench/quotabench => "../q b"` + "\n", "uses: quotabench/quotabench@main "},
	} {
		dir := written(t, c.from)
		module := read(t, dir, "go.mod")
		flow := read(t, dir, ".github/workflows/limiter.yml")
		if !strings.Contains(module, c.module) || !strings.Contains(flow, c.flow) {
			t.Errorf("%+v: go.mod\n%s\nlimiter.yml\n%s", c.from, module, flow)
		}
		clones := c.from.Replace != ""
		if strings.Contains(module, "replace") != clones || strings.Contains(module, "require") == clones ||
			strings.Contains(flow, "git clone") != clones {
			t.Errorf("%+v: go.mod\n%s\nlimiter.yml\n%s", c.from, module, flow)
		}
		for _, name := range []string{"limiter.go", "limiter_test.go", "main.go"} {
			text := read(t, dir, name)
			if b, err := format.Source([]byte(text)); err != nil || string(b) != text {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
	}
}

// TestPlantedRace: as it is written, go test finds the race, and not after the fix that a comment names.
func TestPlantedRace(t *testing.T) {
	testenv.Long(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := written(t, Source{Replace: root})
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+
			" -mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("go", "test", "-vet=off", "-run", "TestLimiter/exploration", "./...")
	for _, want := range []string{"--- FAIL: TestLimiter/exploration", "GUARANTEE in 4 steps", "GET ", "2 of 1 !",
		"QUOTABENCH_REPLAY="} {
		if err == nil || !strings.Contains(out, want) {
			t.Fatalf("%v, no %q in\n%s", err, want, out)
		}
	}
	text := read(t, dir, "limiter.go")
	const race, fix = "\t_, err = count.Run", "\tn, err = count.Run"
	if strings.Count(text, race) != 1 || !strings.Contains(text, "replace _ by n") {
		t.Fatalf("the comment in limiter.go names another fix:\n%s", text)
	}
	if err := os.WriteFile(filepath.Join(dir, "limiter.go"), []byte(strings.Replace(text, race, fix, 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run("go", "test", "-vet=off", "./..."); err != nil {
		t.Fatalf("fixed, and it still fails: %v\n%s", err, out)
	}
	// The vet of go test reads all dependencies first.
	if out, err := run("go", "vet", "-vettool="+filepath.Join(root, ".ci", "vet"), "./..."); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run("go", "build", "-o", "limits.exe", "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, command := range []string{"explore", "sim", "run --rounds 1 --duration 100ms"} {
		args := append(strings.Fields(command), "--config", "quotabench.yaml", "--out", strings.Fields(command)[0]+".out")
		if out, err := run(filepath.Join(dir, "limits.exe"), args...); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// Files of the current directory stay, whatever it is called.
func TestWriteHere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("main.go", []byte("package mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "."} {
		_, err := Write(dir, Source{Version: "v1.2.3"})
		if got := read(t, ".", "main.go"); err == nil || got != "package mine" {
			t.Errorf("%q: %v, and main.go is %s", dir, err, got)
		}
	}
}
