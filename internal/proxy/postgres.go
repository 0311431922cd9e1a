package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/proxy/pgwire"
)

// wall is the clock of clients.
var wall clock.Wall

// Postgres opens a door to a PostgreSQL server. Its connections are made by the configuration, with the parameters that
// the service gives; those of the configuration come first. A connection of the service logs in by the password.
func (p *Proxy) Postgres(password string, config *pgconn.Config) (*Door, error) {
	return p.open("postgres", password, func(l *link) dialect {
		return &postgres{link: l, config: config, service: pgproto3.NewBackend(l.service, l.service),
			statements: map[string]string{}, portals: map[string]portal{}}
	})
}

// postgres is one connection by PostgreSQL's protocol.
type postgres struct {
	link    *link
	config  *pgconn.Config
	service *pgproto3.Backend
	store   *pgproto3.Frontend
	wire    *pgwire.Conn

	// What follows belongs to the goroutine that reads the service's commands.
	statements map[string]string // by name
	portals    map[string]portal // by name

	mu      sync.Mutex
	awaited []awaited
	said    string // by the reply that was read last
}

// portal is a statement that is ready to be executed.
type portal struct {
	statement string
	text      string // with its parameters
}

// awaited is what the server answers to a command.
type awaited struct {
	acks  int
	ready bool
}

// setUpTime bounds how long a client takes to log in.
const setUpTime = 30 * time.Second

// open answers what a client says before its first statement, and connects to the server.
func (s *postgres) open(ctx context.Context) (net.Conn, error) {
	client := s.link.service
	if err := client.SetDeadline(wall.Now().Add(setUpTime)); err != nil {
		return nil, err
	}
	s.service.SetMaxBodyLen(maxAhead)
	startup, err := s.greeted()
	if err != nil {
		return nil, err
	}
	if err := s.login(); err != nil {
		return nil, err
	}
	hijacked, err := s.connect(ctx, startup)
	if err != nil {
		s.refuse("08006", "the server cannot be reached: "+err.Error())
		return nil, err
	}
	s.service.Send(&pgproto3.AuthenticationOk{})
	for _, name := range slices.Sorted(maps.Keys(hijacked.ParameterStatuses)) {
		s.service.Send(&pgproto3.ParameterStatus{Name: name, Value: hijacked.ParameterStatuses[name]})
	}
	s.service.Send(&pgproto3.BackendKeyData{ProcessID: hijacked.PID, SecretKey: hijacked.SecretKey})
	s.service.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := errors.Join(s.service.Flush(), client.SetDeadline(time.Time{})); err != nil {
		return nil, errors.Join(err, hijacked.Conn.Close())
	}
	return hijacked.Conn, nil
}

// errNoSession says that a connection is for something else than statements.
var errNoSession = errors.New("the connection is for no statements")

// greeted is the first message of a client that wants a session. There is no encryption here.
func (s *postgres) greeted() (*pgproto3.StartupMessage, error) {
	declined := false
	for {
		message, err := s.service.ReceiveStartupMessage()
		if err != nil {
			if declined {
				s.note(func(door *Door) { door.insists = true })
			}
			return nil, err
		}
		switch m := message.(type) {
		case *pgproto3.SSLRequest, *pgproto3.GSSEncRequest:
			declined = true
			if _, err := s.link.service.Write([]byte{'N'}); err != nil {
				return nil, err
			}
		case *pgproto3.CancelRequest:
			return nil, errors.Join(errNoSession, s.cancel(m))
		case *pgproto3.StartupMessage:
			if m.Parameters["replication"] != "" {
				s.refuse("0A000", "there is no replication by this way")
				return nil, errNoSession
			}
			return m, nil
		}
	}
}

// note changes the door.
func (s *postgres) note(change func(*Door)) {
	s.link.proxy.mu.Lock()
	defer s.link.proxy.mu.Unlock()
	change(s.link.door)
}

// login has the client send the proxy's password.
func (s *postgres) login() error {
	s.service.Send(&pgproto3.AuthenticationCleartextPassword{})
	err := errors.Join(s.service.SetAuthType(pgproto3.AuthTypeCleartextPassword), s.service.Flush())
	if err != nil {
		return err
	}
	message, err := s.service.Receive()
	if err != nil {
		return err
	}
	password, ok := message.(*pgproto3.PasswordMessage)
	if !ok || !s.link.door.admits([]byte(password.Password)) {
		s.note(func(door *Door) { door.barred++ })
		s.refuse("28P01", "log in by the password of DATABASE_URL")
		return errNoSession
	}
	return nil
}

// refuse ends a connection before it is a session.
func (s *postgres) refuse(code, message string) {
	s.service.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
	_ = s.service.Flush() // the client may have gone
}

// connect opens the session on the server.
func (s *postgres) connect(ctx context.Context, startup *pgproto3.StartupMessage) (*pgconn.HijackedConn, error) {
	config := s.config.Copy()
	for name, value := range startup.Parameters {
		_, given := config.RuntimeParams[name]
		if !given && name != "user" && name != "database" && !strings.HasPrefix(name, "_pq_.") {
			config.RuntimeParams[name] = value
		}
	}
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		s.wire = pgwire.Wrap(conn)
		return s.wire, nil
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	s.store = hijacked.Frontend
	s.store.SetMaxBodyLen(maxAhead)
	s.link.proxy.mu.Lock()
	s.link.session = hijacked.PID
	s.link.proxy.mu.Unlock()
	return hijacked, nil
}

// cancel passes on that a statement is to be cancelled.
func (s *postgres) cancel(request *pgproto3.CancelRequest) error {
	data, err := request.Encode(nil)
	if err != nil {
		return err
	}
	network, addr := pgconn.NetworkAddress(s.config.Host, s.config.Port)
	conn, err := s.config.DialFunc(s.link.proxy.ctx, network, addr)
	if err != nil {
		return err
	}
	_, err = conn.Write(data)
	if err == nil {
		_, err = io.Copy(io.Discard, conn) // the server closes it once that is done
	}
	return errors.Join(err, conn.Close())
}

// next reads messages up to a Sync or a Flush, after which the server answers.
func (s *postgres) next() (*Command, error) {
	command := &Command{manner: passing}
	for {
		message, err := s.service.Receive()
		if err != nil {
			return nil, err
		}
		encoded, err := encode(message)
		if err != nil {
			return nil, err
		}
		command.raw = append(command.raw, encoded...)
		if len(command.raw) > maxAhead {
			return nil, fmt.Errorf("%w: more than %d bytes without a Sync", errNotPostgres, maxAhead)
		}
		if s.takes(command, message) {
			return command, nil
		}
	}
}

// errNotPostgres says that what was read is no message of the protocol.
var errNotPostgres = errors.New("no message of PostgreSQL's protocol")

// takes takes a message in, and reports whether the server answers after it.
func (s *postgres) takes(command *Command, message pgproto3.FrontendMessage) (complete bool) {
	switch m := message.(type) {
	case *pgproto3.Query:
		command.executes(m.String, pgwire.Statement(m.String, nil))
		command.ready = true
		return true
	case *pgproto3.Parse:
		s.statements[m.Name] = m.Query
		command.acks++
	case *pgproto3.Bind:
		statement := s.statements[m.PreparedStatement]
		s.portals[m.DestinationPortal] = portal{statement, pgwire.Statement(statement, parameters(m))}
		command.acks++
	case *pgproto3.Execute:
		portal := s.portals[m.Portal]
		command.executes(portal.statement, portal.text)
		command.acks++
	case *pgproto3.Describe, *pgproto3.Close:
		command.acks++
	case *pgproto3.FunctionCall:
		command.executes("CALL", "a function call;")
		command.ready = true
		return true
	case *pgproto3.Sync:
		command.ready = true
		return true
	case *pgproto3.Flush:
		return true
	default: // the end of the session, or data of COPY
		command.manner = unanswered
		return true
	}
	return false
}

// parameters are those of a statement, as text.
func parameters(bind *pgproto3.Bind) []any {
	out := make([]any, len(bind.Parameters))
	for i, data := range bind.Parameters {
		format := int16(0)
		switch n := len(bind.ParameterFormatCodes); {
		case n == 1:
			format = bind.ParameterFormatCodes[0]
		case i < n:
			format = bind.ParameterFormatCodes[i]
		}
		out[i] = pgwire.Parameter(data, format)
	}
	return out
}

// executes has the command execute what is one statement, or several with semicolons between them.
func (c *Command) executes(sql, text string) {
	c.parts = append(c.parts, []string{text})
	for statement := range strings.SplitSeq(sql, ";") {
		switch manner := mannerOfStatement(statement); {
		case manner == blocking:
			c.manner = blocking
		case manner == data && c.manner == passing:
			c.manner = data
		}
	}
}

// mannerOfStatement is how one statement is treated.
func mannerOfStatement(sql string) manner {
	sql = uncommented(sql)
	end := strings.IndexFunc(sql, func(r rune) bool { return !unicode.IsLetter(r) })
	word := sql
	if end >= 0 {
		word = sql[:end]
	}
	switch strings.ToLower(word) {
	case "set", "show", "reset", "discard", "deallocate":
		return passing
	case "":
		if sql == "" {
			return passing
		}
	case "select":
		if strings.EqualFold(strings.TrimSpace(sql), "select 1") {
			return passing
		}
	case "copy", "listen", "unlisten":
		return blocking
	}
	return data
}

// uncommented is a statement without the comments before it.
func uncommented(sql string) string {
	for {
		sql = strings.TrimSpace(sql)
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, _ = strings.Cut(sql, "*/")
		default:
			return sql
		}
	}
}

func (s *postgres) sends(command *Command) {
	if command.manner == unanswered {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = append(s.awaited, awaited{acks: command.acks, ready: command.ready})
	if len(s.awaited) == 1 {
		s.wire.Forget()
	}
}

// reply reads messages until one ends what a command is answered. What belongs to no command is pushed, as is what a
// COPY is about.
func (s *postgres) reply() (raw []byte, pushed bool, err error) {
	var said reading
	for {
		message, err := s.store.Receive()
		if err != nil {
			if len(raw) > 0 { // why the server ends the session
				return raw, true, nil
			}
			return nil, false, err
		}
		encoded, err := encode(message)
		if err != nil {
			return nil, false, err
		}
		raw = append(raw, encoded...)
		if len(raw) > maxAhead {
			return nil, false, fmt.Errorf("%w: a reply of more than %d bytes", errNotPostgres, maxAhead)
		}
		said.take(message)
		pushed, over := s.answers(message, &said)
		if pushed || over {
			return raw, pushed, nil
		}
	}
}

// answers reports whether a message is passed on by itself, and whether it ends the reply to a command.
func (s *postgres) answers(message pgproto3.BackendMessage, said *reading) (pushed, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.awaited) == 0 {
		return true, false
	}
	next := &s.awaited[0]
	switch message.(type) {
	case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse, *pgproto3.CopyData:
		return true, false
	case *pgproto3.ReadyForQuery:
		over = next.ready
	case *pgproto3.ErrorResponse:
		over = !next.ready
	case *pgproto3.ParseComplete, *pgproto3.BindComplete, *pgproto3.CloseComplete, *pgproto3.NoData,
		*pgproto3.RowDescription, *pgproto3.CommandComplete, *pgproto3.EmptyQueryResponse, *pgproto3.PortalSuspended:
		next.acks--
		over = !next.ready && next.acks == 0
	}
	if over {
		s.said = said.text(s.wire)
		s.awaited = s.awaited[1:]
	}
	return false, over
}

// reading is what a reply says besides its rows.
type reading struct {
	tag    string
	failed error
}

func (r *reading) take(message pgproto3.BackendMessage) {
	switch m := message.(type) {
	case *pgproto3.CommandComplete:
		r.tag = pgwire.Tag(pgconn.NewCommandTag(string(m.CommandTag)))
	case *pgproto3.ErrorResponse:
		r.failed = pgconn.ErrorResponseToPgError(m)
	}
}

// text is the reply in a few words: its error, its rows, or what it did.
func (r *reading) text(wire *pgwire.Conn) string {
	if r.failed != nil {
		return "error: " + pgwire.Error(r.failed)
	}
	if rows := wire.Text(); rows != "" {
		return rows
	}
	return r.tag
}

func (s *postgres) text([]byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

func (s *postgres) fails(raw []byte) bool { return bytes.HasPrefix(raw, []byte{'E'}) }

// foul reports whether an error is none of the connection.
func (s *postgres) foul(err error) bool {
	var network net.Error
	return !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) &&
		!errors.As(err, &network)
}

// encode is a message as it is sent.
func encode(message pgproto3.Message) ([]byte, error) { return message.Encode(nil) }
