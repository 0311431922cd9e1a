package pgwire

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Statement is a statement on one line, with its arguments in their places.
func Statement(sql string, args []any) string {
	text := strings.TrimSuffix(strings.Join(strings.Fields(sql), " "), ";")
	for i := len(args); i > 0; i-- { // $10 before $1
		shown := fmt.Sprint(args[i-1])
		if text, ok := args[i-1].(string); ok {
			shown = "'" + text + "'"
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", i), shown)
	}
	return text + ";"
}

// Tag is what a statement did, in a few words.
func Tag(tag pgconn.CommandTag) string {
	switch text := tag.String(); {
	case tag.Select() || tag.Insert() || tag.Update() || tag.Delete():
		if n := tag.RowsAffected(); n != 1 {
			return fmt.Sprintf("%d rows", n)
		}
		return "1 row"
	case text == "ROLLBACK":
		return "rolled back"
	default:
		return ""
	}
}

// Error is an error of the server without what differs between two runs,
// such as process numbers.
func Error(err error) string {
	if pgError, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgError.Message + " (" + pgError.Code + ")"
	}
	return err.Error()
}
