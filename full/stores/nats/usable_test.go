package nats

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// withAccounts is a server with accounts of several rights.
const withAccounts = `
listen: "127.0.0.1:%d"
jetstream { store_dir: %q }
accounts {
  none { users: [{user: none, password: s3cr3t}] }
  full { jetstream { max_file: 10 }, users: [{user: full, password: s3cr3t}] }
  room { jetstream: enabled, users: [
    {user: good, password: s3cr3t}
    {user: mute, password: s3cr3t, permissions: {publish: {deny: "$JS.API.>"}}}
    {user: reader, password: s3cr3t, permissions: {publish: {deny: "$JS.API.STREAM.CREATE.>"}}}
    {user: silent, password: s3cr3t, permissions: {publish: {allow: "$JS.API.>"}}}
  ] }
}
`

// A server that cannot serve a run is refused at the start, with what it lacks.
func TestUnusableServersAreRefused(t *testing.T) {
	bin := testenv.Program(t, "nats")
	addr := ""
	c, err := server.Launch(bin, 0, func(port int) (*server.Child, error) {
		home, err := server.NewHome("", "nats", "nobody")
		if err != nil {
			return nil, err
		}
		addr = fmt.Sprintf("127.0.0.1:%d", port)
		file, err := home.WriteSecret("nats.conf", fmt.Sprintf(withAccounts, port, home.Data))
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(bin, "--config", file)
		cmd.Dir, cmd.Env = home.Data, server.Env()
		c, err := home.Start(cmd)
		if err != nil {
			return nil, err
		}
		return c, server.Await(t.Context(), c, func(string) bool { return false }, func(context.Context) error {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			return conn.Close()
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for user, want := range map[string]string{
		"none":   "has no JetStream for this account",
		"full":   "takes no streams of this account: see the limits and the room",
		"mute":   "lets this user not do what runs do",
		"reader": "STREAM.CREATE",
		"silent": "lets this user not do what runs do",
	} {
		n, err := Open(t.Context(), "nats://"+user+":s3cr3t@"+addr, stores.Options{})
		if err == nil {
			_ = n.Close()
			t.Errorf("%s: opened, want %q", user, want)
			continue
		}
		storecheck.Error(t, err, want)
	}
	n, err := Open(t.Context(), "nats://good:s3cr3t@"+addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name := range n.js.StreamNames(t.Context()).Name() {
		t.Errorf("left: %s", name)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
