package zookeeper

import (
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// TestLostRaceForThePort starts a server on a port that another program has.
func TestLostRaceForThePort(t *testing.T) {
	bin := testenv.Program(t, "zookeeper")
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, 1, port, o)
		return err
	})
}

// TestParseURLs: what the URL says reaches the store; cluster.Parse has the rest.
func TestParseURLs(t *testing.T) {
	t.Setenv(passwordEnv, "from-there")
	z, err := parse("zk://me@a.example:1,b.example:2")
	if err != nil || z.user != "me" || z.password != "from-there" || len(z.servers) != 2 ||
		z.servers[1] != "b.example:2" || z.self.About.Addr != "a.example:1,b.example:2" {
		t.Errorf("%+v, %v", z, err)
	}
	_, err = parse("zk://u:s3cr3t%@a:1")
	storecheck.Error(t, err, "--store zookeeper= is not a valid URL", "zk://user:password@host:port")
}

// TestDigest: of a user "super" with the password "test", as ZooKeeper's own
// documentation computes it.
func TestDigest(t *testing.T) {
	if got, want := digest("super", "test"), "super:D/InIHSb7yEEbrWz8b9l71RjZJU="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
