package cluster

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/host/server"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestPortsDiffer: servers that do not listen yet are given ports of their own.
func TestPortsDiffer(t *testing.T) {
	const members = 1000 // of which some would get the same one by chance
	first, err := server.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{}
	if _, err := Start(members, first, func(_, port int) (*server.Child, error) {
		ports[port] = true
		return nil, nil
	}); err != nil || len(ports) != members {
		t.Errorf("%d ports for %d servers (%v)", len(ports), members, err)
	}
}

func TestParse(t *testing.T) {
	const env = "QUOTABENCH_TEST_PASSWORD"
	t.Setenv(env, "from-there")
	for spec, want := range map[string]Members{
		"https://me:p%40ss@a.example:1,b.example:2": {"https", "me", "p@ss", []string{"a.example:1", "b.example:2"}},
		"https://a.example:1,https://b.example:2/":  {"https", "", "", []string{"a.example:1", "b.example:2"}},
		"tls://me@localhost:1/":                     {"tls", "me", "from-there", []string{"localhost:1"}},
		"zk://[::1]:1":                              {"zk", "", "", []string{"[::1]:1"}},
	} {
		m, ok := Parse(spec, env)
		if !ok || m.Scheme != want.Scheme || m.User != want.User || m.Password != want.Password ||
			!slices.Equal(m.Addrs, want.Addrs) {
			t.Errorf("%s: %+v, %t", spec, m, ok)
		}
	}
	for _, spec := range []string{"x://", "x://a", "x://a:b", "x://:s3cr3t@a:1", "x://u:s3cr3t@a:1/x", "x://u:s3cr3t%@a:1",
		"x://u:s3cr3t/@", "x://a:1,", "x://a:99999"} {
		if m, ok := Parse(spec, env); ok {
			t.Errorf("%s: %+v", spec, m)
		}
	}
	m := Members{Scheme: "nats", Addrs: []string{"a:1", "b:2"}}
	if got := m.URLs(); !slices.Equal(got, []string{"nats://a:1", "nats://b:2"}) {
		t.Errorf("%q", got)
	}
}
