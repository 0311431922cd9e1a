package cli

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/kubernetes"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
	"github.com/quotabench/quotabench/internal/version"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// mostPods is how many a Job has at most.
const mostPods = 1000

func kubernetesCommand() *cobra.Command {
	j := &kubernetes.Job{Name: "quotabench", CPU: "1", Memory: "1Gi", Variable: group.StoreVariable}
	stay := 24 * time.Hour
	var s *settings.Set
	cmd := described("kubernetes", &cobra.Command{
		Args: needs(1, 0, "kubernetes takes the command that pods share: give --generators N run ..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkJob(s, j); err != nil {
				return err
			}
			j.TTL, j.Command, j.Token = int64(stay/time.Second), args[0], strings.ToLower(rand.Text())
			if err := planJob(j, args[1:]); err != nil {
				return err
			}
			return fail(ExitFailed, j.Write(cmd.OutOrStdout()))
		},
	})
	s = settings.New(cmd, []settings.Setting{
		{Name: "generators", Title: settings.Load, Value: settings.Whole(&j.Parts, 1, mostPods)},
		{Name: "name", Title: settings.Output, Value: settings.Text(&j.Name)},
		{Name: "image", Title: settings.Output, Value: settings.Text(&j.Image), Computed: true},
		{Name: "secret", Title: settings.Stores, Value: settings.Text(&j.Secret), Computed: true},
		{Name: "claim", Title: settings.Output, Value: settings.Text(&j.Claim), Computed: true},
		{Name: "cpus", Title: settings.Load, Value: settings.Text(&j.CPU)},
		{Name: "memory", Title: settings.Load, Value: settings.Text(&j.Memory)},
		{Name: "keep", Title: settings.Output, Value: settings.Span(&stay, 365*24*time.Hour)},
	})
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// checkJob fills in defaults, and reports what Kubernetes would not take.
func checkJob(s *settings.Set, j *kubernetes.Job) error {
	if j.Parts == 0 {
		return usagef("say how many pods there are by kubernetes --generators N")
	}
	j.Secret = cmp.Or(j.Secret, j.Name+"-stores")
	if j.Image == "" {
		number, _ := version.Build()
		if number == "devel" || strings.Contains(number, "-") { // no release
			return usagef("there is no image of this build: make one by docker build, push it, and name it by --image")
		}
		j.Image = "ghcr.io/quotabench/quotabench:" + strings.TrimPrefix(number, "v")
	}
	for _, x := range []struct {
		name, text string
		check      func(string) error
	}{
		{"name", j.Name, kubernetes.CheckName}, {"secret", j.Secret, kubernetes.CheckObject},
		{"claim", cmp.Or(j.Claim, "none"), kubernetes.CheckObject},
		{"cpus", j.CPU, kubernetes.CheckQuantity}, {"memory", j.Memory, kubernetes.CheckQuantity},
	} {
		if err := x.check(x.text); err != nil {
			return s.Wrong(x.name, err)
		}
	}
	return nil
}

// planJob makes the plan that all pods share from the arguments of the command, which it checks as that would.
func planJob(j *kubernetes.Job, args []string) (err error) {
	var s *group.Settings
	var chosen func() ([]strategies.Selection, error)
	of := another(j.Command)
	switch j.Command {
	case "run":
		s, j.Coordinated = group.New(group.Run), true
		registerRun(of, s)
		chosen = func() ([]strategies.Selection, error) {
			c, err := s.Measurement()
			return c.Strategies, err
		}
	case "sim":
		x := &simSettings{Settings: group.New(group.Sim)}
		x.register(of)
		s, chosen = x.Settings, func() ([]strategies.Selection, error) {
			_, err := x.configure()
			return nil, err // it simulates its stores
		}
	case "explore":
		x := newExploreSettings()
		x.register(of)
		s, chosen = x.Settings, func() ([]strategies.Selection, error) {
			all, _, err := x.configure()
			return slices.DeleteFunc(all, func(sel strategies.Selection) bool { return !explore.OnPostgres(sel) }), err
		}
	default:
		return usagef("pods share a run, a sim or an explore, not %q: give --generators N run ...", j.Command)
	}
	if j.Claim == "" && !j.Coordinated {
		return usagef("--claim: the records of parts have to be merged: give a volume that all pods can write to")
	}
	if args, err = parseFlags(of, args); err != nil {
		return err
	}
	if err := s.Read(args); err != nil {
		return err
	}
	if j.Plan, err = s.Portable("strategy"); err != nil {
		return err
	}
	all, err := chosen()
	if err != nil {
		return err
	}
	j.Stores, err = kinds(all)
	return err
}

// kinds are those of the stores that strategies need, sorted.
func kinds(all []strategies.Selection) (out []string, err error) {
	for _, sel := range all {
		for _, need := range sel.Needs {
			d, err := stores.DriverOf(need.Store())
			if err != nil {
				return nil, fail(ExitUsage, fmt.Errorf("strategy %s: %w", sel, err))
			}
			out = append(out, d.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
