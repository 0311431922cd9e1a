package cli

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

// Without a server, what is SQL is refused if it was named, and skipped in a
// list.
func TestExploreSQLWithoutServer(t *testing.T) {
	newPlace(t, nil)
	o := call(t.Context(), "explore", "sql-only", "--postgres", "embedded")
	const forms = "needs PostgreSQL: give auto, process, container or a URL by --postgres"
	if o.code != exit.Usage || !strings.Contains(o.stderr, forms) {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	o = call(t.Context(), "explore", "sql-only,honest", "--postgres", "embedded", "--property", "leak", "--exit-zero")
	if o.code != exit.OK || !strings.Contains(o.stderr, "skipped sql-only: ") || !strings.Contains(o.stdout, "honest") {
		t.Errorf("in a list: exit %d: %s", o.code, o.stderr)
	}
	o = call(t.Context(), "explore", "sql-only", "--postgres", "elsewhere")
	if o.code != exit.Usage || !strings.Contains(o.stderr, "--postgres") {
		t.Errorf("bad value: exit %d: %s", o.code, o.stderr)
	}
}

func TestExploreSQL(t *testing.T) {
	testenv.Sequential(t)
	storetest.Postgres(t) // or skip
	c := storetest.PostgresPool(t).Config().ConnConfig
	server := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password),
		Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: c.Database}
	o := call(t.Context(), "explore", "sql-only", "--postgres", testenv.Pick(server.String(), "process"), "--policy",
		"agent-api")
	if o.code != exit.Gate || !strings.Contains(o.stdout, "one step per statement on PostgreSQL") {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}
