package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/quota"
)

// Driver is a kind of store that this program can open.
type Driver struct {
	// Name is what stores are named after, e.g. "redis", "redis.2", and the flag of
	// a kind that has one: a word of lower-case letters and digits.
	Name string
	// Title is the name for people, e.g. "Redis".
	Title string
	// Class is how its clients ask, which decides where reports show what they cost.
	Class Class
	// Noun is what it keeps, in the singular; empty for "key".
	Noun string
	// Volatile is set if a server that ends loses what it holds.
	Volatile bool
	// Pool is the most connections that an instance has if a run does not say; 0 for 16.
	Pool int
	// Clients are how the paths of the packages of its client begin, which a report of a
	// call that hangs passes over, e.g. "go.etcd.io/".
	Clients []string
	// Get says how to get a store of this kind if a run has none, e.g. "start one and
	// give its URL by --redis"; empty for what Choices say.
	Get string
	// Choices are the words that Open takes, each with what it means. One that ends
	// in "://" stands for all URLs.
	Choices []Choice
	// URLs are the forms of URL that Open takes, e.g. "redis://, rediss:// or
	// unix://"; empty if it takes none.
	URLs string
	// Default is the choice of a run that names no store of this kind; empty if
	// it then has none.
	Default string
	// Image is the container image that is used if [Options] name none; empty
	// if the driver runs no containers.
	Image string
	// PasswordEnv is the environment variable with the password for URLs without
	// one; empty if there is none.
	PasswordEnv string
	// Open opens a store. Its errors are of one line, say how to go on, and hold no
	// password. An [AbsentError] says that there is no store and that none is required.
	Open func(ctx context.Context, spec string, options Options) (Store, error)
	// Further opens a store with a name of its own, e.g. "redis.replica": by its spec,
	// and without one as the run's main store of the kind was opened. What it cannot
	// open is an error of one line that says how to give it. nil: Open opens them all,
	// by their specs.
	Further func(ctx context.Context, further Further) (Store, error)
	// ErrorKind says what an error of a client or a server of this kind came from; empty
	// for errors that it does not know. Connections and deadlines are known anyway. nil:
	// it knows none. See [ErrorKind].
	ErrorKind func(err error) quota.ErrorKind
	// Survey says which of the things it needs this machine has; nil for nothing.
	Survey func(ctx context.Context) []Finding
}

// Class says how clients of a kind of store ask.
type Class string

// The classes. What is of neither kind shares the columns of Redis in reports, which say so.
const (
	ClassOther Class = "other"
	ClassRedis Class = "redis"
	ClassSQL   Class = "sql"
)

// ClassOf is the class of a driver. One that is not registered has none of its own.
func ClassOf(driver string) Class {
	if d, ok := drivers[driver]; ok {
		return cmp.Or(d.Class, ClassOther)
	}
	return ClassOther
}

// Choice is a word that a driver opens stores by.
type Choice struct{ Word, Doc string }

// Words are the words of the driver's choices, without those that stand for URLs.
func (d *Driver) Words() []string {
	var out []string
	for _, choice := range d.Choices {
		if !strings.HasSuffix(choice.Word, "://") {
			out = append(out, choice.Word)
		}
	}
	return out
}

// Forms lists all that Open takes, for errors, e.g. "auto, process, process:durable, embedded or a URL".
func (d *Driver) Forms() string { return d.listed(d.Words()) }

// Main lists what Open takes without options, for help texts, e.g. "auto, process, embedded or a URL".
func (d *Driver) Main() string {
	return d.listed(slices.DeleteFunc(d.Words(), func(word string) bool { return strings.Contains(word, ":") }))
}

func (d *Driver) listed(words []string) string {
	if d.URLs != "" {
		words = append(words, "a URL")
	}
	return format.Or(words)
}

// Refuse is the error of a spec that the registered driver does not know.
func Refuse(driver, spec string) error { return drivers[driver].Refuse(spec) }

// Refuse is the error of a spec that the driver does not know.
func (d *Driver) Refuse(spec string) error {
	forms := d.Forms()
	if d.URLs != "" {
		forms += " (" + d.URLs + ")"
	}
	switch {
	case spec == "":
		return &SpecError{Asked: d.Asked("") + " ", Why: "is empty: give " + forms}
	case strings.ContainsAny(spec, "@/?"): // may be a mistyped URL, and hold a password
		return fmt.Errorf("the value of %s is none of %s", d.Asked(""), forms)
	}
	if n := quota.Nearest(spec, d.Words()); n != "" {
		return d.wrong("%q: did you mean %s? It is none of %s", spec, n, forms)
	}
	return d.wrong("%q is none of %s", spec, forms)
}

// SpecError says that a store cannot be asked for in that way.
type SpecError struct {
	// Asked is how the command line begins to ask for such a store, e.g. "--redis ".
	Asked string
	// Why is what is wrong.
	Why string
}

func (e *SpecError) Error() string { return e.Asked + e.Why }

// WrongSpec is a [*SpecError] about a store of a registered driver.
func WrongSpec(driver, format string, args ...any) error {
	return drivers[driver].wrong(format, args...)
}

func (d *Driver) wrong(format string, args ...any) error {
	return &SpecError{Asked: d.asked(), Why: fmt.Sprintf(format, args...)}
}

// HasFlag reports whether the command line has a flag of the driver's name. Stores of other drivers are given by
// --store.
func (d *Driver) HasFlag() bool { return ClassOf(d.Name) != ClassOther }

// Asked is how the command line asks for a store by that spec, e.g. "--redis process" or "--store nginx=process".
func (d *Driver) Asked(spec string) string { return strings.TrimSpace(d.asked() + spec) }

// asked is what stands before a spec.
func (d *Driver) asked() string {
	if d.HasFlag() {
		return "--" + d.Name + " "
	}
	return "--store " + d.Name + "="
}

var drivers = map[string]*Driver{}

// Register makes a driver known. It is called by init functions, and panics on a
// driver without a name or an Open and on a second one of a name.
func Register(driver Driver) {
	switch _, taken := drivers[driver.Name]; {
	case !isWord(driver.Name, ""):
		panic(fmt.Sprintf("stores: %q is no name of a driver", driver.Name))
	case driver.Open == nil:
		panic("stores: driver " + driver.Name + " cannot open anything")
	case taken:
		panic("stores: there are two drivers of the name " + driver.Name)
	}
	drivers[driver.Name] = &driver
	stacks.PassOver(driver.Clients...)
}

// Opener makes a Driver's Open of a function that returns a store's own type: if
// that fails, the Store is nil.
func Opener[S Store](open func(context.Context, string, Options) (S, error)) func(context.Context, string,
	Options) (Store, error) {
	return func(ctx context.Context, spec string, options Options) (Store, error) {
		s, err := open(ctx, spec, options)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// Drivers are the registered drivers, sorted by name.
func Drivers() []*Driver {
	return slices.SortedFunc(maps.Values(drivers), func(a, b *Driver) int { return cmp.Compare(a.Name, b.Name) })
}

// DriverOf returns the driver of the store with the name: the part before the
// first dot names it.
func DriverOf(name string) (*Driver, error) {
	kind, rest, dotted := strings.Cut(name, ".")
	if dotted && !isWord(rest, "-_.") {
		return nil, fmt.Errorf("%q is no name of a store: write e.g. redis.2, the kind, a dot, and letters or digits", name)
	}
	if driver, ok := drivers[kind]; ok {
		return driver, nil
	}
	known := slices.Sorted(maps.Keys(drivers))
	if len(known) == 0 {
		return nil, errors.New("no kinds of stores are built in: import github.com/quotabench/quotabench/stores/all")
	}
	return nil, fmt.Errorf("there is no kind of store %q: %s", kind, quota.OneOf(kind, known))
}

func isWord(s, also string) bool {
	if s == "" {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(also, r)
	})
}

// Finding says whether this machine has one of the things that stores come from.
type Finding = server.Finding

// surveyTimeout bounds how long a container engine may take to answer: a broken
// one must not keep the answer about everything else.
const surveyTimeout = 500 * time.Millisecond

// Survey looks for all that the registered drivers can use. It starts nothing and
// takes less than a second.
func Survey(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	var found []Finding
	var images []server.Image
	for _, driver := range Drivers() {
		if driver.Survey != nil {
			found = append(found, driver.Survey(ctx)...)
		}
		if driver.Image != "" {
			images = append(images, server.Image{Name: driver.Name, Ref: driver.Image})
		}
	}
	return append(found, server.SurveyContainers(ctx, images)...)
}

// errorRanks orders kinds: of an error that joins several the last one counts.
var errorRanks = []quota.ErrorKind{"", quota.ErrorContention, quota.ErrorTimeout, quota.ErrorStore}

// ErrorKind says what an error came from that a client of a store returned: drivers
// know those of their servers and clients, and connections are the same for all.
func ErrorKind(err error) quota.ErrorKind {
	rank := connectionError(err)
	for _, driver := range drivers {
		if driver.ErrorKind != nil {
			rank = max(rank, slices.Index(errorRanks, driver.ErrorKind(err)))
		}
	}
	if rank <= 0 {
		return quota.ErrorOther
	}
	return errorRanks[rank]
}

// connectionError is the rank of what becomes of connections and deadlines: the highest
// of all that the error wraps.
func connectionError(err error) (rank int) {
	switch e := err.(type) { //nolint:errorlint // what it wraps is looked at below
	case net.Error: // a context's deadline is one, too
		if e.Timeout() {
			return slices.Index(errorRanks, quota.ErrorTimeout)
		}
		return slices.Index(errorRanks, quota.ErrorStore)
	case interface{ Unwrap() error }:
		return connectionError(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			rank = max(rank, connectionError(part))
		}
		return rank
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return slices.Index(errorRanks, quota.ErrorStore)
	}
	return 0
}
