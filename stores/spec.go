package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Spec says where a named store of a run comes from.
type Spec struct {
	// Name of the store: that of its driver, alone or with a dot and a name of its
	// own, e.g. "redis", "redis.2", "redis.replica".
	Name string
	// From is a choice of the driver, e.g. "process", or a URL. It may hold a
	// password.
	From string
	// Options of the store.
	Options Options
	// Optional stores are opened by [OpenNeeded] only if they are needed, and may
	// then be missing: they are a driver's default and not what was asked for.
	Optional bool
}

// ParseSpecs reads texts of the form NAME=SPEC, e.g. "redis.2=process". Each must
// name a registered driver, and no name may come twice.
func ParseSpecs(texts []string) ([]Spec, error) {
	var specs []Spec
	seen := map[string]bool{}
	for _, text := range texts {
		name, from, ok := strings.Cut(text, "=")
		if !ok || strings.ContainsAny(name, ":/@") {
			// What is wrong may be a URL with a password: it is not shown.
			return nil, errors.New("a store is given as NAME=SPEC, e.g. redis.2=process")
		}
		d, err := DriverOf(name)
		switch {
		case err != nil:
			return nil, err
		case from == "":
			return nil, fmt.Errorf("store %s: nothing stands after the = sign: give %s", name, d.Forms())
		case seen[name]:
			return nil, fmt.Errorf("store %s is given twice", name)
		}
		seen[name] = true
		specs = append(specs, Spec{Name: name, From: from})
	}
	return specs, nil
}

// OpenSet opens stores in their order. A store that is neither available nor
// required is absent from the set, with the reason. If one cannot be opened,
// those before it are closed again.
func OpenSet(ctx context.Context, specs []Spec) (*Set, error) {
	s := NewSet()
	for _, x := range specs {
		if err := s.open(ctx, x); err != nil {
			return nil, closing(s, err)
		}
	}
	return s, nil
}

// closing closes the set after an error.
func closing(s *Set, err error) error { return errors.Join(err, s.Close()) }

func (s *Set) open(ctx context.Context, x Spec) error {
	if err := s.free(x.Name); err != nil {
		return err
	}
	d, err := DriverOf(x.Name)
	if err != nil {
		return err
	}
	if x.From == "" {
		return d.Refuse("")
	}
	st, err := s.from(ctx, d, x)
	var absent *AbsentError
	switch {
	case errors.As(err, &absent):
		return s.AddAbsent(x.Name, absent.Reason)
	case err != nil && x.Name != d.Name:
		return fmt.Errorf("store %s: %w", x.Name, err)
	case err != nil:
		return err
	}
	if f, ok := st.(Follower); ok && f.Follows() && !x.Options.ReadOnly {
		if _, replica := PrimaryOf(x.Name); !replica {
			why := fmt.Errorf("--%s leads to a replica at %s, to which nothing can be written: give the address of its primary",
				d.Name, st.Info().Addr)
			return errors.Join(why, st.Close())
		}
	}
	return s.Add(x.Name, st)
}

// from opens one store of a driver.
func (s *Set) from(ctx context.Context, d *Driver, x Spec) (Store, error) {
	if x.Name == d.Name || d.Further == nil {
		return d.Open(ctx, x.From, x.Options)
	}
	main, _ := s.Get(d.Name)
	return d.Further(ctx, Further{Name: x.Name, Spec: x.From, Main: main, Options: x.Options})
}
