package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// silence is how long either side waits for a word of the other until it takes it for lost.
	silence = 10 * time.Second
	// beat is how often each side asks the other for a word.
	beat = 2 * time.Second
	// patience is how long a server of NATS has to answer.
	patience = 5 * time.Second
	// partSize is how many bytes of a file are in one message. A server of NATS takes 1 MiB.
	partSize = 256 << 10
)

// hello is what a generator says of itself.
type hello struct {
	// Index of the generator, from 1, of so many.
	Index, Of int
	// Fingerprint of its plan.
	Fingerprint string
	// Place names its process for people.
	Place string
	// Inbox is the subject at which it answers, and hears why the run is stopped.
	Inbox string
}

// welcome is what all generators of a run have in common.
type welcome struct {
	// RunID names the run, and what it keeps in stores.
	RunID string
}

// progress is what a generator does, in one line, and which share of the whole it has done, 0 to 1.
type progress struct {
	Text  string
	Share float64
}

// part is the next one of a file.
type part struct {
	Name string
	Data []byte
	Last bool
}

// stoppedError ends all generators of a run.
type stoppedError struct{ Reason string }

func (e *stoppedError) Error() string { return e.Reason }

// What a generator asks its coordinator for.
const (
	callJoin = "join" // with a hello, for a welcome
	callTime = "time" // for the coordinator's clock, in nanoseconds since 1970
	callMeet = "meet" // with a step, for the moment at which it begins
	callTell = "tell" // with its progress
	callFile = "file" // with a part
	callDone = "done" // with the reason if it has failed
)

// What a coordinator sends to a generator.
const (
	sentPing = "ping" // to be answered
	sentStop = "stop" // with the reason
)

// request is a call of a generator.
type request struct {
	Call  string
	Index int
	Body  any `json:",omitempty"`
}

// received is a call as the coordinator reads it.
type received struct {
	Call  string
	Index int
	Body  json.RawMessage
}

// reply is the answer to it.
type reply struct {
	Refused string          `json:",omitempty"`
	Body    json.RawMessage `json:",omitempty"`
}

// message is what a coordinator sends.
type message struct{ Kind, Text string }

// respond answers a message with a value, or with why there is none. Who asked may be gone.
func respond(msg *nats.Msg, refused string, value any) {
	r := reply{Refused: refused}
	r.Body, _ = json.Marshal(value) // numbers and texts
	data, _ := json.Marshal(r)
	_ = msg.Respond(data)
}

// ask makes a call. A [stoppedError] is the coordinator's answer; without one it is lost.
func ask(ctx context.Context, conn *nats.Conn, subject string, q request, value any) error {
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	msg, err := conn.RequestWithContext(ctx, subject, data)
	if err != nil {
		return err
	}
	var r reply
	if err := json.Unmarshal(msg.Data, &r); err != nil {
		return fmt.Errorf("an answer cannot be read: %w", err)
	}
	if r.Refused != "" {
		return &stoppedError{r.Refused}
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(r.Body, value)
}

// ended is why the other side counts as lost.
func ended(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) {
		return fmt.Sprintf("nothing came from it for %v: a process is stopped or has no processor, or they are cut off",
			silence)
	}
	return "its process or its connection has ended"
}

// meeting is where the processes of a run meet: a server of NATS, and a name there.
type meeting struct {
	server *url.URL
	root   string // begins the subjects of the run
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// parseMeeting reads a URL. Its error holds no password.
func parseMeeting(text string) (meeting, error) {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "nats" || at.Host == "" || !nameForm.MatchString(strings.TrimPrefix(at.Path, "/")) {
		return meeting{}, errors.New("give the URL of a server of NATS and a name of this run, of letters, digits, _ and -, " +
			"e.g. nats://localhost:4222/friday")
	}
	if port, err := strconv.ParseUint(at.Port(), 10, 16); at.Port() != "" && (err != nil || port == 0) {
		return meeting{}, fmt.Errorf("port %s: give one from 1 to 65535", at.Port())
	}
	return meeting{at, "quotabench." + strings.TrimPrefix(at.Path, "/") + "."}, nil
}

// join is the subject at which a coordinator answers, and clock the one for its time, which no other call is to delay.
func (m meeting) join() string  { return m.root + "coordinator" }
func (m meeting) clock() string { return m.root + "clock" }

// connect makes a client that never connects again: what was lost in between would be missed.
func (m meeting) connect() (*nats.Conn, error) {
	options := []nats.Option{nats.NoReconnect(), nats.Timeout(patience),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	if password, both := m.server.User.Password(); both {
		options = append(options, nats.UserInfo(m.server.User.Username(), password))
	} else if m.server.User != nil {
		options = append(options, nats.Token(m.server.User.Username()))
	}
	conn, err := nats.Connect("nats://"+m.server.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("no server of NATS answers at %s: %w", m.server.Host, err)
	}
	return conn, nil
}

// maxMessage is the largest message that a server of NATS takes by default.
const maxMessage = 1 << 20

// subscribe makes a subscription that has room for the messages of so many peers, each of which waits for the answer to
// one before it sends the next. What comes beyond that, from a stranger, takes no memory and is dropped. The server
// has the subscription before it sees what the same client publishes afterwards.
func subscribe(conn *nats.Conn, subject string, peers int, take nats.MsgHandler) (*nats.Subscription, error) {
	subscription, err := conn.Subscribe(subject, take)
	if err != nil {
		return nil, err
	}
	return subscription, subscription.SetPendingLimits(-1, (1+peers)*maxMessage)
}
