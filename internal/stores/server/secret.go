package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
)

// NewPassword is the password of one server that is started here. Loopback
// ports are open to every user of the machine, who could otherwise read and
// change what a run measures. It is passed in files, since all users can read
// the command lines of processes.
func NewPassword() string { return rand.Text() }

// secretPrefix begins the names of files in private directories that kinds of servers name.
const secretPrefix = "own-"

// WriteSecret makes a file in the directory that the user, or we if it is
// nil, can read, and no other.
func (d *Dir) WriteSecret(name, text string, user *Account) (path string, err error) {
	folder, file := filepath.Split(name)
	path = filepath.Join(d.Path, folder, secretPrefix+file)
	err = errors.Join(os.WriteFile(path, []byte(text), 0o600), user.Chown(path))
	return path, format.Wrapf(err, "write %s", name)
}

// Mkdir makes a folder in the directory that the user, or we if it is nil, own.
func (d *Dir) Mkdir(name string, user *Account) (path string, err error) {
	path = filepath.Join(d.Path, name)
	err = errors.Join(os.Mkdir(path, 0o700), user.Chown(path))
	return path, format.Wrapf(err, "make a data directory")
}

// Enterable tells why another user's program could not work in the directory: the
// program itself fails without a word.
func (d *Dir) Enterable(user *Account) error {
	if user == nil {
		return nil
	}
	for dir := filepath.Dir(d.Path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("user %s, whom the server runs as, may not enter %s: set TMPDIR to a folder that all may enter", user.Name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Redact takes passwords out of a text that comes from a client library.
func Redact(s string, secrets ...string) string {
	for _, x := range secrets {
		if x != "" {
			s = strings.ReplaceAll(s, x, "***")
		}
	}
	return s
}
