package server

import (
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// Leases on what is kept in servers that others use too.
const (
	// LeaseLife is how long a lease holds without being renewed. It decides when
	// the process that holds it cannot be looked up: on another machine.
	LeaseLife = 2 * time.Minute
	// LeaseRenewal is the time between two renewals.
	LeaseRenewal = 20 * time.Second
)

// JustStarted is how long a server has been up in which a lease need not have been
// renewed: before that it may have been away. Tests of servers that they start themselves
// set it to 0.
var JustStarted = 2 * LeaseRenewal

// Owner is the process that something in a shared server belongs to.
type Owner struct {
	// Run is random, and of one process.
	Run string `json:"run"`
	// Host is the machine's name for people, Machine what tells it from others: its
	// boot, and where the numbers of processes mean what they do.
	Host    string `json:"host"`
	Machine string `json:"machine"`
	PID     int    `json:"pid"`
	// Process is as [ProcessIdentity] has it; empty if that is not known.
	Process string    `json:"process"`
	User    int       `json:"user"`
	Since   time.Time `json:"since"`
}

// Us is this process.
var Us = sync.OnceValue(func() Owner {
	host, _ := os.Hostname() // an unnamed host is shown as such
	id, _ := ProcessIdentity(os.Getpid())
	return Owner{
		Run: strings.ToLower(crand.Text()[:12]), Host: host, Machine: machineOf(id, host),
		PID: os.Getpid(), Process: id, User: os.Getuid(), Since: clock.Wall{}.Now().UTC().Truncate(time.Second),
	}
})

// machineOf is where the number of a process with that identity means something.
func machineOf(identity, host string) string {
	space, _ := ProcessNamespace()
	if _, boot, ok := strings.Cut(identity, "@"); ok {
		return boot + " " + space
	}
	return host
}

// Encode is the owner as text.
func (o Owner) Encode() string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return string(data)
}

// ParseOwner reads what [Owner.Encode] wrote. ok is false for any other text.
func ParseOwner(text string) (owner Owner, ok bool) {
	err := json.Unmarshal([]byte(text), &owner)
	return owner, err == nil && owner.Run != "" && owner.Machine != ""
}

// Ours reports whether the owner is this process.
func (o Owner) Ours() bool { return o.Run == Us().Run }

// Lives reports whether the owner is running. renewed says that its lease has not run
// out, which decides when its process cannot be looked up: on another machine, and if
// the system may hide the processes of another user.
func (o Owner) Lives(renewed bool) bool {
	owner := Us()
	switch {
	case o.Run == owner.Run:
		return true
	case o.Machine != owner.Machine || o.Process == "" || owner.Process == "":
		return renewed
	case IsStill(o.PID, o.Process):
		return true
	}
	return renewed && owner.User != 0 && owner.User != o.User
}

// String names the owner for people.
func (o Owner) String() string {
	return fmt.Sprintf("process %d on %s, from %s", o.PID, o.Host, o.Since.Format("2006-01-02T15:04:05Z"))
}
