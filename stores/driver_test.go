package stores_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/postgres"
	_ "github.com/quotabench/quotabench/stores/redis"
)

// said is an error that a Redis answered.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}

// TestErrorKinds: what connections, deadlines and the servers' answers say.
func TestErrorKinds(t *testing.T) {
	code := func(c string) error { return &pgconn.PgError{Code: c} }
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for kind, errs := range map[quota.ErrorKind][]error{
		quota.ErrorContention: {
			goredis.TxFailedErr, code("40001"), code("40P01"), code("55P03"),
		},
		quota.ErrorTimeout: {
			context.DeadlineExceeded, os.ErrDeadlineExceeded, goredis.ErrPoolTimeout, code("57014"), syscall.ETIMEDOUT,
			fmt.Errorf("charge: %w", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}),
			errors.Join(code("40001"), context.DeadlineExceeded),
		},
		quota.ErrorStore: {
			refused, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, &net.DNSError{Err: "no such host"},
			said("OOM command not allowed"), said("LOADING Redis is loading"), said("READONLY You can't write"),
			said("NOPERM no rights"),
			said("ERR max number of clients reached"), said("ERR unknown command 'EVALSHA'"),
			code("08006"), code("28P01"), code("53300"), code("57P01"), code("58030"), code("25006"), code("42501"),
			fmt.Errorf("charge: %w; %w", context.DeadlineExceeded, refused), errors.Join(code("40001"), said("OOM full")),
		},
		quota.ErrorOther: {
			errors.New("wrong"), context.Canceled, goredis.Nil, said("WRONGTYPE not a hash"),
			said("ERR value is not an integer"),
			code("42P01"), code("23505"), code(""), nil,
		},
	} {
		for _, err := range errs {
			if got := stores.ErrorKind(err); got != kind {
				t.Errorf("%v (%T) is %s, want %s", err, err, got, kind)
			}
		}
	}
}
