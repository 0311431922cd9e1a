package stores

import (
	"context"

	"github.com/moby/moby/client"
)

// ProcessIdentity is what a child is recorded with.
func ProcessIdentity(pid int) (string, error) { return processIdentity(pid) }

// OpenRedisWithoutProcess is what auto does where no redis-server is found.
func OpenRedisWithoutProcess(ctx context.Context, o Options) (*Redis, error) {
	return openRedisWithoutProcess(ctx, o, "a test wants none")
}

// OpenPostgresWithoutProcess is what auto does where no PostgreSQL is found.
func OpenPostgresWithoutProcess(ctx context.Context, o Options) (*Postgres, error) {
	return openPostgresWithoutProcess(ctx, o, "a test wants none")
}

// OpenRedisPublished opens a container with a published port, wherever it runs.
func OpenRedisPublished(ctx context.Context, o Options) (*Redis, error) {
	e, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	e.shared = false
	return openRedisContainer(ctx, e, o)
}

// OpenPostgresPublished opens a container with a published port, wherever it runs.
func OpenPostgresPublished(ctx context.Context, o Options) (*Postgres, error) {
	e, err := findEngine(ctx)
	if err != nil {
		return nil, err
	}
	e.shared = false
	return openPostgresContainer(ctx, e, o)
}

// ContainersOf counts the containers that belong to a process.
func ContainersOf(ctx context.Context, pid int) (n int, err error) {
	e, err := findEngine(ctx)
	if err != nil {
		return 0, err
	}
	all, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true})
	for _, c := range all.Items {
		if owner, _, ok := parseRecord(c.Labels[labelOwner]); ok && owner == pid {
			n++
		}
	}
	return n, err
}

// Volumes counts the volumes of the container engine.
func Volumes(ctx context.Context) (int, error) {
	e, err := findEngine(ctx)
	if err != nil {
		return 0, err
	}
	all, err := e.client.VolumeList(ctx, client.VolumeListOptions{})
	return len(all.Items), err
}

// Password of a server started here.
func (r *Redis) Password() string { return r.base.Password }

// Password of a server started here.
func (p *Postgres) Password() string { return p.base.ConnConfig.Password }

// Arguments of a server that is a child of ours; they are everybody's to read,
// if only until a server writes over them.
func (r *Redis) Arguments() []string { return arguments(r.own) }

// Arguments of a server that is a child of ours.
func (p *Postgres) Arguments() []string { return arguments(p.own) }

func arguments(s ownServer) []string {
	if c, ok := s.(*child); ok {
		return c.cmd.Args
	}
	return nil
}
