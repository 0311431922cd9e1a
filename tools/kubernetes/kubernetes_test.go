// Package kubernetes tests the manifests of quotabench kubernetes against the types of the Kubernetes API.
package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kubernetes"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// objects are what manifests hold.
type objects struct {
	plan    core.ConfigMap
	token   core.Secret
	service core.Service
	jobs    map[string]batch.Job
}

// decoded reads manifests as the API server does, and refuses fields that it does not know.
func decoded(text string) (o objects, err error) {
	o.jobs = map[string]batch.Job{}
	for _, doc := range strings.Split(text, "\n---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			return o, err
		}
		var job batch.Job
		of := map[string]any{"ConfigMap": &o.plan, "Secret": &o.token, "Service": &o.service, "Job": &job}[kind.Kind]
		if err := yaml.UnmarshalStrict([]byte(doc), of); err != nil {
			return o, err
		}
		if kind.Kind == "Job" {
			o.jobs[job.Name] = job
		}
	}
	return o, nil
}

func command(t *testing.T, args ...string) string {
	var out, messages bytes.Buffer
	c := cli.Command(&out, &messages)
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, &messages)
	}
	return out.String()
}

func TestRunIsCoordinated(t *testing.T) {
	text := command(t, "kubernetes", "--generators", "40", "--name", "hot", "--image", "example.org/q:1", "--cpus", "500m", "--claim", "data", "--keep", "1h",
		"run", "incr-expire", "exact", "--policy", "5 attempts per rolling 15m", "--requests", "1000")
	o, err := decoded(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	parts, coordinator := o.jobs["hot"].Spec, o.jobs["hot-coordinator"].Spec
	if *parts.CompletionMode != batch.IndexedCompletion || *parts.Completions != 40 || *parts.Parallelism != 40 || *parts.TTLSecondsAfterFinished != 3600 {
		t.Errorf("%+v", parts)
	}
	if rules := parts.PodFailurePolicy.Rules; len(rules) != 1 || rules[0].Action != batch.PodFailurePolicyActionFailJob ||
		rules[0].OnExitCodes.Operator != batch.PodFailurePolicyOnExitCodesOpIn || !slices.Equal(rules[0].OnExitCodes.Values, []int32{cli.ExitFailed}) {
		t.Errorf("%+v", rules)
	}
	for key, value := range o.service.Spec.Selector {
		if coordinator.Template.Labels[key] != value {
			t.Errorf("the service selects %s=%s, and the coordinator has %v", key, value, coordinator.Template.Labels)
		}
	}
	pod, lead := parts.Template.Spec, coordinator.Template.Spec
	c, head := pod.Containers[0], lead.Containers[0]
	if got := strings.Join(c.Args, " "); got != "run --config=/plan/plan.yaml --generator=job/40 --out=/scratch/part --quiet" {
		t.Error(got)
	}
	if got := strings.Join(head.Args, " "); !strings.HasPrefix(got, "coordinate --generators=40 --at=tcp://$(QUOTABENCH_TOKEN)@0.0.0.0:7600 ") || !strings.HasSuffix(got, " --out=/results/hot") {
		t.Error(got)
	}
	if o.service.Spec.Ports[0].Port != head.Ports[0].ContainerPort || !strings.HasSuffix(c.Env[2].Value, "@"+o.service.Name+":7600") {
		t.Errorf("%+v, %+v, %+v", o.service.Spec, head.Ports, c.Env)
	}
	if e := c.Env[1]; e.ValueFrom.SecretKeyRef.Name != o.token.Name || len(o.token.StringData[e.ValueFrom.SecretKeyRef.Key]) < 20 {
		t.Errorf("%+v, %v", e, o.token.StringData)
	}
	if e := c.Env[3]; e.Name != "QUOTABENCH_REDIS" || e.ValueFrom.SecretKeyRef.Name != "hot-stores" || e.ValueFrom.SecretKeyRef.Key != "redis" {
		t.Errorf("%+v", e)
	}
	term := pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	for key, value := range term.LabelSelector.MatchLabels {
		if parts.Template.Labels[key] != value {
			t.Errorf("pods avoid %s=%s, and have %v", key, value, parts.Template.Labels)
		}
	}
	if c.Resources.Requests.Cpu().MilliValue() != 500 || c.Resources.Requests.Memory().Value() != 1<<30 || c.Image != "example.org/q:1" {
		t.Errorf("%+v", c)
	}
	mounted(t, &pod, "plan", "work")
	mounted(t, &lead, "plan", "work", "results")
	// The plan is a configuration file of the command.
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(o.plan.Data["plan.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "run", "--config", file, "--print-config"); !strings.Contains(got, "\nrequests: 1000\n") || !strings.Contains(got, "5 attempts per rolling 15m") {
		t.Error(got)
	}
}

// mounted requires that a pod has these volumes, and that its container mounts them.
func mounted(t *testing.T, pod *core.PodSpec, names ...string) {
	t.Helper()
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	if want := strings.Join(names, " "); strings.Join(volumes, " ") != want || strings.Join(mounts, " ") != want {
		t.Errorf("volumes %q, mounts %q, want %q", volumes, mounts, want)
	}
}

func TestPartsHaveNoCoordinator(t *testing.T) {
	for _, of := range [][]string{{"sim", "exact", "--param", "seed=1..8+1"}, {"explore", "check-then-set", "--full", "--clients", "4"}} {
		text := command(t, append([]string{"kubernetes", "--generators", "8", "--image", "q", "--claim", "data"}, of...)...)
		o, err := decoded(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		job := o.jobs["quotabench"].Spec
		if len(o.jobs) != 1 || o.service.Name != "" || *job.BackoffLimitPerIndex != 0 {
			t.Errorf("%+v", o)
		}
		c := job.Template.Spec.Containers[0]
		if got := strings.Join(c.Args, " "); !strings.HasPrefix(got, of[0]+" --config=/plan/plan.yaml --part=job/8 --out=/results/quotabench/$(JOB_COMPLETION_INDEX)") {
			t.Error(got)
		}
		mounted(t, &job.Template.Spec, "plan", "work", "results")
	}
}

// Whatever is in a text, it stays that text; and a field that the API does not know is seen.
func TestTextsStayTexts(t *testing.T) {
	const hostile = "a: \"b\"\n---\nkind: Secret # {{.Token}} 'c' \\ \u2028\t<&>: |\n"
	j := kubernetes.Job{Name: "a", Command: "run", Plan: hostile, Image: hostile, Claim: "c", Secret: "s", Coordinated: true, Parts: 2, CPU: "1", Memory: "1Gi",
		Stores: []string{"redis"}, Variable: strings.ToUpper}
	var b bytes.Buffer
	if err := j.Write(&b); err != nil {
		t.Fatal(err)
	}
	o, err := decoded(b.String())
	if err != nil || o.plan.Data["plan.yaml"] != hostile || o.jobs["a"].Spec.Template.Spec.Containers[0].Image != hostile || len(o.jobs) != 2 {
		t.Errorf("%+v, %v\n%s", o, err, &b)
	}
	if _, err := decoded(strings.Replace(b.String(), "completionMode:", "completionsMode:", 1)); err == nil {
		t.Error("a field of another name is taken")
	}
}
