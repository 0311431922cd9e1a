package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestPasswordInEverySetting plants a URL with a password in each flag and each key of a configuration, and reads
// whatever is said and written.
func TestPasswordInEverySetting(t *testing.T) {
	testenv.Sequential(t)
	const secret = "S3cr3tOk"
	place := newPlace(t, nonsenseFiles())
	all := knobs()
	for _, k := range all {
		for _, url := range []string{"redis://user:" + secret + "@127.0.0.1:1/0", "a=redis://:" + secret + "@127.0.0.1:1",
			"http://127.0.0.1:1/?token=" + secret} {
			args := k.args(url, true)
			if k.flag && k.name == "out" { // the name of a directory is no secret
				continue
			}
			o := call(t.Context(), args...)
			if strings.Contains(o.stdout+o.stderr, secret) {
				t.Errorf("%s: %q says %s", k, args, o.stdout+o.stderr)
			}
		}
	}
	for _, name := range place.files() {
		for _, root := range []string{place.dir, place.temp} {
			data, err := os.ReadFile(filepath.Join(root, name))
			if err == nil && filepath.Base(name) != "nonsense.yaml" && strings.Contains(string(data), secret) {
				t.Errorf("%s has the password", name)
			}
		}
	}
	if len(all) < 150 {
		t.Errorf("%d settings", len(all))
	}
}

// TestPasswordsOnNoCommandLine plants a password in each setting of commands that start another program, and reads the
// command line of that program, as every user of the machine can.
func TestPasswordsOnNoCommandLine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("command lines are read from /proc")
	}
	testenv.Sequential(t)
	const secret = "S3cr3tOk"
	newPlace(t, nonsenseFiles())
	write(t, "base", "#!/bin/sh\ntr '\\0' ' ' < /proc/$$/cmdline >> lines\nexport -p | grep ^export.QUOTABENCH >> stores\nexit 3\n")
	if err := os.Chmod("base", 0o755); err != nil {
		t.Fatal(err)
	}
	baseFirst := &against{Settings: &group.Settings{}}
	for baseFirst.order(1, 1)[0] != 0 {
		baseFirst.Seed++
	}
	seed := strconv.FormatUint(baseFirst.Seed, 10)
	noURLs := []string{"against", "seed", "out", "metrics", "region"}
	for _, k := range knobs() {
		command := strings.Join(k.command, " ")
		if !k.flag || command != "run" && command != "sim" || slices.Contains(noURLs, k.name) {
			continue
		}
		for _, value := range []string{"redis://user:" + secret + "@127.0.0.1:1/0", "postgres://user:" + secret + "@127.0.0.1:1/d",
			"service=http://user:" + secret + "@127.0.0.1:1/", "redis.2=redis://:" + secret + "@127.0.0.1:1"} {
			call(t.Context(), command, "honest", "--against", "./base", "--seed", seed, "--"+k.name+"="+value)
		}
	}
	// What has no password is a flag where a variable would not be read.
	call(t.Context(), "sim", "honest", "--against", "./base", "--seed", seed, "--redis", "process")
	call(t.Context(), "run", "honest", "--against", "./base", "--seed", seed, "--store", "redis.2=process")
	lines, err := os.ReadFile("lines")
	if err != nil || strings.Contains(string(lines), secret) || !strings.Contains(string(lines), "--redis=process") ||
		!strings.Contains(string(lines), "--store=redis.2=process") {
		t.Errorf("command lines: %q, %v", lines, err)
	}
	given, err := os.ReadFile("stores")
	for _, want := range []string{"QUOTABENCH_REDIS='redis://user:", "QUOTABENCH_POSTGRES='postgres://user:",
		"QUOTABENCH_STORE='service=http://user:", "QUOTABENCH_STORE='redis.2=redis://:"} {
		if !strings.Contains(string(given), want+secret) {
			t.Errorf("no %s in the environment: %s, %v", want, given, err)
		}
	}
}
