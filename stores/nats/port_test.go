package nats

import (
	"testing"

	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/internal/storecheck"
)

// TestLostRaceForThePort starts a server on a port that another program has.
func TestLostRaceForThePort(t *testing.T) {
	bin, err := find()
	if err != nil {
		t.Skip(err)
	}
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, port, o)
		return err
	})
}

func TestParseURLs(t *testing.T) {
	n, err := parse("tls://me:p%40ss@a.example:1,b.example:2")
	if err != nil || n.user != "me" || n.password != "p@ss" || n.url != "tls://a.example:1,tls://b.example:2" || n.info.Addr != "a.example:1,b.example:2" {
		t.Errorf("%+v, %v", n, err)
	}
	t.Setenv(passwordEnv, "from-there")
	if n, err = parse("nats://me@localhost:1/"); err != nil || n.password != "from-there" || n.url != "nats://localhost:1" {
		t.Errorf("%+v, %v", n, err)
	}
	for _, spec := range []string{"nats://", "nats://a", "nats://a:b", "nats://:s3cr3t@a:1", "nats://u:s3cr3t@a:1/x", "nats://u:s3cr3t%@a:1"} {
		if n, err := parse(spec); err == nil {
			t.Errorf("%s: %+v", spec, n)
		} else {
			storecheck.Error(t, err, "--nats is not a valid URL", "nats://user:password@host:port")
		}
	}
}
