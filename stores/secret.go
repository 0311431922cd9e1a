package stores

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// newPassword is the password of one server that is started here. Loopback
// ports are open to every user of the machine, who could otherwise read and
// change what a run measures. It is passed in files, since everybody can read
// the command lines of processes.
func newPassword() string { return rand.Text() }

// redisConfig is a configuration file that sets the password.
func redisConfig(password string) string {
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

// writeSecret makes a file in the directory that the user, or we where it is
// nil, and nobody else can read.
func (d *privateDir) writeSecret(name, text string, user *account) (path string, err error) {
	path = filepath.Join(d.path, name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), user.chown(path)); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}
