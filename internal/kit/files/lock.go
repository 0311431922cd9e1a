package files

import (
	"errors"
	"os"
)

// ErrHeld is the error of a lock that another process holds.
var ErrHeld = errors.New("another process uses it")

// Lock is a file that this process holds.
type Lock struct{ file *os.File }
