package redact

import (
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"redis://h:6379":                          "redis://h:6379",
		"redis://u@h":                             "redis://u@h",
		"redis://u:p@h":                           "redis://u:***@h",
		"redis://:p@h":                            "redis://:***@h",
		"redis://u:p@s:s/w?o#rd@h:6379/2":         "redis://u:***@h:6379/2",
		"--redis=redis://u:p@h":                   "--redis=redis://u:***@h",
		"postgres://h/d?user=u&password=p&x=y":    "postgres://h/d?user=u&password=***&x=y",
		"postgres://h/d?password=p":               "postgres://h/d?password=***",
		"http://h/c?u={subject}&api_key=p":        "http://h/c?u={subject}&api_key=***",
		"http://h/c?key={subject}&Token=p":        "http://h/c?key={subject}&Token=***",
		"postgres://u:p@h/d?sslpassword=q":        "postgres://u:***@h/d?sslpassword=***",
		"three-tier:write=literal,reset=job":      "three-tier:write=literal,reset=job",
		"redis://h:6379/0 and postgres://h:5432/": "redis://h:6379/0 and postgres://h:5432/",
		// A scheme that was forgotten, other parameters, and what only looks alike.
		`--policy "u:p@h": give one`: `--policy "u:***@h": give one`,
		"--out=:p@h":                 "--out=:***@h",
		"host=h PASSWORD=p user=u":   "host=h PASSWORD=*** user=u",
		"write redis://user:password@host:port/database, not redis://:p@h": "write redis://user:password@host:port/database, not redis://:***@h",
		"rediss://h?Password=p":           "rediss://h?Password=***",
		"200@2026-02-28T23:59:30Z+1m":     "200@2026-02-28T23:59:30Z+1m",
		"bad.yaml:2: rush \"200@x\"":      "bad.yaml:2: rush \"200@x\"",
		"cannot read @file: no such file": "cannot read @file: no such file",
		`trouble: "redis:away@0.3-0.6": as in redis:cut@.5, instance/1:paused=1s@0.5 or x:y@0-0.25.`: `trouble: "redis:away@0.3-0.6": as in redis:cut@.5, instance/1:paused=1s@0.5 or x:y@0-0.25.`,
		`trouble: "instances:paused=1s@0": as in instances:restarted@0`:                              `trouble: "instances:paused=1s@0": as in instances:restarted@0`,
		"instances:p@0:6379 instances:p@host":                                                        "instances:***@0:6379 instances:***@host",
		"keys/quota:*:add=1@0.5: no":                                                                 "keys/quota:*:add=1@0.5: no",
		"u:p@0.5@h u:p@0 u:p@0:6379":                                                                 "u:***@h u:***@0 u:***@0:6379",
		"u:p@0.5.0.1 u:p@0.5:6379":                                                                   "u:***@0.5.0.1 u:***@0.5:6379",
		"u:p@0.5.example u:p@0.5-a.b":                                                                "u:***@0.5.example u:***@0.5-a.b",
		"Intel(R) CPU: E5 @ 2.20GHz":                                                                 "Intel(R) CPU: E5 @ 2.20GHz",
	} {
		if got := All(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

func TestRestore(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://h/d?password=***":             "postgres://h/d",
		"postgres://h/d?password=***&a=b":         "postgres://h/d?a=b",
		"postgres://h/d?a=b&password=***":         "postgres://h/d?a=b",
		"postgres://u:***@h/d?sslpassword=***&x=": "postgres://u@h/d?x=",
		"redis://:***@h":                          "redis://@h",
		"redis://u:real@h":                        "redis://u:real@h",
	} {
		if got := Restore(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
