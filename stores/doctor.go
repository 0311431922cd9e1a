package stores

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Finding says whether this machine has one of the things that stores come from.
type Finding struct {
	// Name of the thing, e.g. "redis-server".
	Name string
	// Found is set where it can be used.
	Found bool
	// Detail is one line: what was found and where, or why it cannot be used.
	Detail string
	// Advice is one line, how to get or to use it.
	Advice string
}

// surveyTimeout bounds how long a container engine may take to answer: who asks
// what a machine has does not want to wait for a broken one.
const surveyTimeout = 500 * time.Millisecond

// Survey looks for all that stores can come from. It starts nothing and takes
// less than a second.
func Survey(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	return append([]Finding{surveyRedis(), surveyPostgres()}, surveyContainers(ctx)...)
}

func surveyRedis() Finding {
	f := Finding{Name: "redis-server", Advice: "--redis process"}
	bin, err := findRedis()
	switch {
	case runtime.GOOS == "windows":
		f.Detail, f.Advice = "servers are not started on this system", "use --redis with a URL, or --redis embedded"
	case err != nil:
		f.Detail, f.Advice = "not found on the PATH or in the usual folders", install("redis-server", "redis", "redis", "redis")
	default:
		f.Found, f.Detail = true, bin
	}
	return f
}

func surveyPostgres() Finding {
	f := Finding{Name: "postgresql", Advice: "--postgres process"}
	user, err := serverAccount()
	if err != nil {
		f.Detail, f.Advice = err.Error(), "run as a user other than root, or use --postgres with a URL"
		return f
	}
	bin, err := findPostgres()
	if err != nil {
		f.Detail, f.Advice = "initdb and postgres not found on the PATH or in the usual folders",
			install("postgresql", "postgresql-server", "postgresql", "postgresql@17")
		return f
	}
	f.Found, f.Detail = true, bin
	if user != nil {
		f.Detail += ", to be run as user " + user.name
	}
	return f
}

// surveyContainers looks for an engine, and for the images on it.
func surveyContainers(ctx context.Context) []Finding {
	f := Finding{Name: "container engine", Advice: "--redis container, --postgres container"}
	// What looks for the engine does not always heed ctx. It then goes on until
	// the process ends, which whoever asks for a survey is about to do.
	found := make(chan *engine, 1)
	failed := make(chan error, 1)
	go func() {
		e, err := findEngine(ctx)
		if err != nil {
			failed <- err
			return
		}
		found <- e
	}()
	select {
	case e := <-found:
		f.Found, f.Detail = true, e.client.DaemonHost()
		return []Finding{
			f,
			e.surveyImage(ctx, "redis image", DefaultRedisImage, "--redis container"),
			e.surveyImage(ctx, "postgres image", DefaultPostgresImage, "--postgres container"),
		}
	case err := <-failed:
		// What follows upon the reason is the advice to who wants to run one.
		f.Detail, _, _ = strings.Cut(err.Error(), "): ")
		if f.Detail != err.Error() {
			f.Detail += ")"
		}
		f.Advice = "start Docker or Podman; name its socket in DOCKER_HOST if it is not the usual one"
	case <-ctx.Done():
		f.Detail, f.Advice = "it does not answer in time", "see what is wrong with it, e.g. by docker info"
	}
	return []Finding{f}
}

func (e *engine) surveyImage(ctx context.Context, name, image, use string) Finding {
	f := Finding{Name: name, Found: e.hasImage(ctx, image), Detail: image, Advice: use}
	if !f.Found {
		f.Detail += " is not local"
		f.Advice = use + " fetches it, or name another image with " + strings.Replace(use, " container", "-image", 1)
	}
	return f
}

// install is the command that installs a package here. Its name differs from one
// package manager to the next.
func install(apt, dnf, apk, brew string) string {
	for _, m := range [][3]string{
		{"apt-get", "apt-get install", apt}, {"dnf", "dnf install", dnf}, {"apk", "apk add", apk}, {"brew", "brew install", brew},
	} {
		if _, err := exec.LookPath(m[0]); err == nil {
			return m[1] + " " + m[2]
		}
	}
	return "install its package, often called " + apt
}
