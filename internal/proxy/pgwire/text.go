package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

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

// binaryFormat is the format of a parameter that is no text.
const binaryFormat = 1

// Parameter is the value of a parameter, whose type is not known: text, or a number if its bytes are none.
func Parameter(data []byte, format int16) any {
	text := string(data)
	readable := utf8.Valid(data) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	switch {
	case data == nil:
		return "null"
	case format != binaryFormat || readable:
		return text
	}
	switch len(data) {
	case 2:
		return int16(binary.BigEndian.Uint16(data))
	case 4:
		return int32(binary.BigEndian.Uint32(data))
	case 8:
		return int64(binary.BigEndian.Uint64(data))
	}
	return fmt.Sprintf("%d bytes", len(data))
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
