package service_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// repeatLine is the line that repeats a finding, and shellWord a word of it.
var repeatLine, shellWord = regexp.MustCompile(`replay: quotabench explore (.*)\n`), regexp.MustCompile(`'[^']*'|\S+`)

var replayLine = regexp.MustCompile(`replay: quotabench explore --replay (\S+) --service '(.*?)' --env '(.*?)'\n`)

// The time of a command ends the start of its services, too, and what they have started.
func TestTimeoutWhileServicesStart(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, service := range []string{"sleep 1000", "setsid sleep 1000 & sleep 1000 & wait"} {
		var errs bytes.Buffer
		began := clock.Nano()
		code := cli.Main([]string{"explore", "http", "--service", service, "--redis", "embedded", "--timeout", "1s",
			"--quiet"}, io.Discard, &errs)
		const want = "when the time of the search is up: it runs, and has printed nothing\n"
		if took := time.Duration(clock.Nano() - began); code != exit.Usage || took > server.OpenTimeout/3 ||
			!strings.HasSuffix(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%q: exit %d after %v: %s", service, code, took, &errs)
		}
	}
}

// The least searches that follow one that did not end have the rest of the time, and say that it was too short for all
// faults.
func TestTimeoutOfLeastSearches(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := cli.Main([]string{"explore", "http", "--service", program, "--env", plantedVariable + "=lua", "--redis",
		"embedded", "--clients", "3", "--faults", "crash,lost-reply,outage,script-flush", "--times", "2", "--timeout", "4s",
		"--property", "leak", "--quiet"}, &out, &errs)
	if code != exit.Failed || !strings.Contains(errs.String(), "give a longer --timeout") {
		t.Errorf("exit %d: %s%s", code, &out, &errs)
	}
}

// The command explores a service, writes files, and prints a line that repeats what it found.
func TestExploreServiceCommand(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	call := func(code int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if got := cli.Main(append([]string{"explore"}, args...), &out, &errs); got != code {
			t.Errorf("%q: exit %d, want %d: %s", args, got, code, errs.String())
		}
		return out.String() + errs.String()
	}
	dir := filepath.Join(t.TempDir(), "out")
	found := call(exit.Gate, "http", "--service", program, "--env", plantedVariable+"=get-set", "--property", "leak",
		"--out", dir, "--quiet")
	said := replayLine.FindStringSubmatch(found)
	if !strings.Contains(found, "LEAK in 4 steps") || said == nil {
		t.Fatalf("found %s", found)
	}
	for _, name := range []string{"exploration.json", "report.html", "report.txt"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Contains(b, []byte(program)) {
			t.Errorf("%s does not name the service: %v", name, err)
		}
	}
	again := call(exit.Gate, "--replay", said[1], "--service", said[2], "--env", said[3])
	if !strings.Contains(again, "LEAK again: 2") {
		t.Errorf("repeated: %s", again)
	}
	if none := call(exit.Usage, "--replay", said[1]); !strings.Contains(none, "give its command by --service") {
		t.Errorf("repeated without a service: %s", none)
	}
	// The line that it prints is all that a repetition needs.
	for _, c := range []struct {
		kind, finds string
		args        []string
	}{
		{"incr-expire", "DRIFT", []string{"--counter", "{subject}", "--property", "drift"}},
		{"no-ttl", "FALSE-REJECT", []string{"--redis", "embedded", "--policy", "1 request per first-request 1m", "--faults",
			"clock",
			"--property", "false-reject"}},
	} {
		found := call(exit.Gate, append([]string{"http", "--service", program, "--env", plantedVariable + "=" +
			c.kind, "--quiet"}, c.args...)...)
		line := repeatLine.FindStringSubmatch(found)
		if line == nil {
			t.Fatalf("%s: found %s", c.kind, found)
		}
		var words []string
		for _, word := range shellWord.FindAllString(line[1], -1) {
			words = append(words, strings.Trim(word, "'"))
		}
		if again := call(exit.Gate, words...); !strings.Contains(again, c.finds+" again") {
			t.Errorf("%s: %q repeats %s", c.kind, words, again)
		}
	}
	stopped := call(exit.Usage, "--replay", said[1], "--service", program, "--env", plantedVariable+
		"=lua", "--service-clock", "2026-01-01 00:00:00")
	if !strings.Contains(stopped, "libfaketime") {
		t.Errorf("repeated at a stopped clock: %s", stopped)
	}
	clean := call(exit.OK, "http", "--service", program, "--env", plantedVariable+"=lua", "--quiet")
	if !strings.Contains(clean, "http: PASS (leak, false-reject, ttl, stuck): no violation in any order of 2 callers.") {
		t.Errorf("claims %s", clean)
	}
	if !strings.HasPrefix(clean, "Judged by: LIMIT requests, free again once the longest TTL of the subject's keys has "+
		"passed, since no --policy is given\n") || !strings.Contains(clean, "(--policy '10 requests per first-request 1m')") {
		t.Errorf("does not say how it judges: %s", clean)
	}
	for _, further := range []string{"\nhttp: PASS (ttl): no violation in any order of 1 caller with 1 x crash.",
		"\nskipped http: the clock of the service cannot be stopped: "} {
		if !strings.Contains(clean, further) {
			t.Errorf("no further search says %q: %s", further, clean)
		}
	}
	if broken := call(exit.Usage, "http", "--service", program, "--env", plantedVariable+
		"=exit"); strings.Count(broken, "\n") != 1 {
		t.Errorf("a service that ends: %q", broken)
	}
	one := call(exit.Usage, "http", "--service", program, "--env", plantedVariable+
		"=lua", "--parallel", "2", "--faults", "restart")
	if !strings.HasPrefix(one, "quotabench: --parallel: all databases of a Redis server have one set of scripts") ||
		strings.Count(one, "\n") != 1 {
		t.Errorf("sets of processes whose scripts are lost: %q", one)
	}
	counted := call(exit.OK, "http", "--service", program, "--env", plantedVariable+"=get-set", "--full", "--quiet")
	if !strings.Contains(counted, "every schedule of 2 clients: 6, of which 4 leak") {
		t.Errorf("counted: %s", counted)
	}
}

// TestCommandLeavesOutSpread: what a larger limit leaves out of the searches of a service is said.
func TestCommandLeavesOutSpread(t *testing.T) {
	const left = "not tried: requests in different parts of a window"
	for limit, said := range map[string]bool{"5": false, "6": true} {
		var out, errs bytes.Buffer
		code := cli.Main([]string{"explore", "http", "--service", "/there/is/no/such/program", "--policy",
			"8 per rolling 1m", "--limit", limit}, &out, &errs)
		if code != exit.Usage || strings.Contains(errs.String(), left) != said {
			t.Errorf("limit %s: exit %d, %s", limit, code, errs.String())
		}
	}
}
