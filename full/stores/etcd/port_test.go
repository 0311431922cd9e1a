package etcd

import (
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// TestLostRaceForThePort starts a server on a port that another program has.
func TestLostRaceForThePort(t *testing.T) {
	bin := testenv.Program(t, "etcd")
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, 1, port, o)
		return err
	})
}

// TestParseURLs: what the URL says reaches the store; cluster.Parse has the rest.
func TestParseURLs(t *testing.T) {
	e, err := parse("https://me:p%40ss@a.example:1,b.example:2")
	if err != nil || e.user != "me" || e.password != "p@ss" || e.tls == nil || len(e.endpoints) != 2 ||
		e.endpoints[1] != "https://b.example:2" || e.self.About.Addr != "a.example:1,b.example:2" {
		t.Errorf("%+v, %v", e, err)
	}
	t.Setenv(passwordEnv, "from-there")
	e, err = parse("http://me@localhost:1/")
	if err != nil || e.password != "from-there" || e.tls != nil {
		t.Errorf("%+v, %v", e, err)
	}
	_, err = parse("http://u:s3cr3t%@a:1")
	storecheck.Error(t, err, "--store etcd= is not a valid URL", "http://user:password@host:port")
}
