package nats

import (
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// TestLostRaceForThePort starts a server on a port that another program has.
func TestLostRaceForThePort(t *testing.T) {
	bin := testenv.Program(t, "nats")
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, port, o)
		return err
	})
}

// TestParseURLs: what the URL says reaches the store; cluster.Parse has the rest.
func TestParseURLs(t *testing.T) {
	t.Setenv(passwordEnv, "from-there")
	n, err := parse("tls://me@a.example:1,b.example:2")
	if err != nil || n.user != "me" || n.password != "from-there" || n.url != "tls://a.example:1,tls://b.example:2" ||
		n.self.About.Addr != "a.example:1,b.example:2" {
		t.Errorf("%+v, %v", n, err)
	}
	_, err = parse("nats://u:s3cr3t%@a:1")
	storecheck.Error(t, err, "--store nats= is not a valid URL", "nats://user:password@host:port")
}
