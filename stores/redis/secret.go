package redis

import (
	"fmt"
	"strings"
)

// config is a configuration file that sets the password.
func config(password string) string {
	var b strings.Builder
	b.WriteString(`requirepass "`)
	for _, c := range []byte(password) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("\"\n")
	return b.String()
}
