package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/programs"
)

// Home is where a child of ours lives: its directory, the folder in it for the data,
// and the user whom it runs as.
type Home struct {
	Dir  *Dir
	Data string   // path of the folder for the data
	User *Account // nil for our own
	As   string   // what to say of the user after "child process of ...", or ""
	Root error    // why it runs as root; nil if it does not
}

// NewHome makes a directory in parent for a server. If we are root it runs as the first
// of the accounts that is there, or as root if the machine or the folder leaves no other
// user room.
func NewHome(parent string, accounts ...string) (*Home, error) {
	dir, err := NewDir(parent)
	if err != nil {
		return nil, err
	}
	home := &Home{Dir: dir}
	user, err := ServiceAccount(accounts...)
	if err == nil {
		err = dir.Enterable(user)
	}
	switch {
	case err != nil:
		home.Root, home.As = err, ", running as root ("+format.OneLine(err.Error())+")"
	case user != nil:
		home.User = user
		home.As = ", running as " + user.Name
	}
	home.Data, err = dir.Mkdir("data", home.User)
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return home, nil
}

// WriteSecret writes a file that the server alone can read. If that fails the
// directory is gone.
func (h *Home) WriteSecret(name, text string) (path string, err error) {
	path, err = h.Dir.WriteSecret(name, text, h.User)
	if err != nil {
		return "", errors.Join(err, h.Dir.Remove())
	}
	return path, nil
}

// Start starts a server that lives here and ends when it is asked to as Redis is.
func (h *Home) Start(cmd *exec.Cmd) (*Child, error) {
	return Start(cmd, h.Dir, StopRedis, StopRedis, h.User)
}

// Launch starts a server of the program bin on a free port, which is given to start. The port that is so much above it
// is free as well; 0 for a server that takes one port.
func Launch[S any](bin string, above int, start func(port int) (S, error)) (s S, err error) {
	err = OnFreePort(above, func(port int) (err error) {
		s, err = start(port)
		return err
	})
	return s, format.Wrapf(err, "start %s", bin)
}

// Find returns the path of a program. If it is missing the error also says what to do instead.
func Find(program programs.Program, instead string) (path string, err error) {
	path, err = program.Path()
	if err != nil {
		return "", fmt.Errorf("%w, or %s", err, instead)
	}
	return path, nil
}

// Survey says whether a program is here. remote is what to do if servers are not started on
// this system.
func Survey(program programs.Program, remote string) Finding {
	if runtime.GOOS == "windows" {
		return Finding{Name: program.Title, Detail: "servers are not started on this system", Advice: remote}
	}
	path, err := program.Path()
	return Surveyed(program, path, err)
}

// Surveyed says what became of looking for a program.
func Surveyed(program programs.Program, path string, err error) Finding {
	if err != nil {
		return Finding{Name: program.Title, Detail: "not found on the PATH or in the usual folders",
			Advice: program.Install()}
	}
	return Finding{Name: program.Title, Found: true, Detail: path, Advice: program.Option}
}

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
			return fmt.Errorf("user %s, whom the server runs as, may not enter %s: set TMPDIR to a folder that all may enter",
				user.Name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Redact takes passwords out of a text that comes from a client library.
func Redact(text string, secrets ...string) string {
	for _, x := range secrets {
		if x != "" {
			text = strings.ReplaceAll(text, x, "***")
		}
	}
	return text
}
