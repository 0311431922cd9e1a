package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/quota"
)

// errorKind is [stores.Driver.ErrorKind], by the server's code: see "PostgreSQL Error
// Codes" in its manual.
func errorKind(err error) quota.ErrorKind {
	var said *pgconn.PgError
	if !errors.As(err, &said) || len(said.Code) != 5 {
		return ""
	}
	switch said.Code {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return quota.ErrorContention
	case "57014", "25P03", "25P04": // query_canceled; a transaction that was idle, or took, too long
		return quota.ErrorTimeout
	case "25006", "42501": // read_only_sql_transaction, insufficient_privilege
		return quota.ErrorStore
	}
	switch said.Code[:2] {
	case "08", "28", "53", "57", "58", "XX": // connection, login, resources, operator, system, internal
		return quota.ErrorStore
	}
	return ""
}
