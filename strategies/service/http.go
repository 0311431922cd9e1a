package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// NeedService is the store of http: a service of the user's own. Its client has the
// methods of remote.
const needService strategies.Need = "service"

// remote is a client of a service.
type remote interface {
	HTTP() *http.Client
	URL() string
	Login(*http.Request)
}

func init() {
	family.Register(files, strategies.Meta{
		Name:    "http",
		Needs:   []strategies.Need{needService},
		Outside: true,
		Kinds:   []quota.Kind{quota.Rolling, quota.Bucket, quota.FirstRequest},
		Serves:  servesSingle,
		Counts:  quota.CountsNothing,
		Options: httpOptions,
		Down:    family.WhenDown,
		Setup: strategies.Setup{
			Check: apart,
			Suits: namesSubject,
			Connections: func(_ string, options quota.Options) strategies.Connections {
				return strategies.Connections{Pool: int(options.Int("connections"))}
			},
		},
		Guarantee: []quota.Clause{
			{
				Property: quota.PropertyLeak, Formula: "L + may-leak",
				Bound: func(params quota.Params) int64 { return promised(params.Options["may-leak"], params.Offered) },
			},
			{
				Property: quota.PropertyFalseReject, Formula: "may-reject",
				Bound: func(params quota.Params) int64 { return promised(params.Options["may-reject"], quota.Unbounded) },
			},
		},
		Open: openHTTP,
	})
}

var httpOptions = []quota.Option{
	{Name: "method", Default: "GET", Values: []string{"GET", "HEAD", "POST", "PUT", "DELETE"}},
	{Name: "subject-header", Check: checkSubjectHeader},
	{Name: "admitted", Default: "2xx", Check: checkStatuses},
	{Name: "rejected", Default: "429", Check: checkStatuses},
	{Name: "may-leak", Default: "0", Check: checkBound},
	{Name: "may-reject", Default: "0", Check: checkBound},
	{Name: "remaining", Default: "RateLimit-Remaining+X-RateLimit-Remaining", Check: checkNames},
	{Name: "retry-after", Default: "Retry-After", Check: checkNames},
	{Name: "keep-alive", Default: "true", Type: "bool"},
	{Name: "connections", Default: "0", Type: "int", Min: "0", Max: "10000"},
	{Name: "timeout", Default: "0s", Type: "duration", Min: "0s"},
	family.Down,
}

// service is one instance of http.
type service struct {
	asker
	url string
}

func openHTTP(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	c, ok := env.Clients[string(needService)].(remote)
	if !ok {
		return nil, errors.New("http needs a service: give its URL by --store service=URL")
	}
	options := env.Options
	return &service{url: c.URL(), asker: asker{
		http: c.HTTP(), clock: env.Clock, prefix: env.Prefix, method: options["method"], header: options["subject-header"],
		admitted: statusesOf(options["admitted"]), rejected: statusesOf(options["rejected"]),
		remaining: names(options["remaining"]), retry: names(options["retry-after"]),
		timeout: options.Duration("timeout"), closes: !options.Bool("keep-alive"), login: c.Login,
	}}, nil
}

// apart refuses statuses that would mean two things.
func apart(options quota.Options) error {
	admitted := statusesOf(options["admitted"])
	rejected := statusesOf(options["rejected"])
	for i := range admitted {
		if admitted[i] && rejected[i] {
			return fmt.Errorf("the options admitted and rejected have the status %d in common", firstStatus+i)
		}
	}
	return nil
}

// namesSubject refuses a service that would not be told subjects apart.
func namesSubject(options quota.Options, store any) error {
	s, ok := store.(interface{ URL() string })
	if ok && !strings.Contains(s.URL(), subject) && options["subject-header"] == "" {
		return errors.New("every subject would be the same to the service: put {subject} into the URL of --store " +
			"service=URL, e.g. http://localhost:8080/check?user={subject}, or name a header by subject-header")
	}
	return nil
}

// Take implements [strategies.Strategy].
func (s *service) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return s.ask(ctx, s.url, req)
}

// Close implements [strategies.Strategy].
func (s *service) Close(context.Context) error { return nil }
