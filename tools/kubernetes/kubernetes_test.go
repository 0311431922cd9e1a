// Package kubernetes tests the manifest of examples/kubernetes against the types of the Kubernetes API, and on a
// kubelet.
package kubernetes

import (
	"os"
	"slices"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/exit"
)

// manifest reads the example as the API server does, and refuses fields that it does not know.
func manifest(t *testing.T) (job batch.Job) {
	t.Helper()
	text, err := os.ReadFile("../../examples/kubernetes/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		t.Fatal(err)
	}
	return job
}

// TestManifest: the Job has one pod more than generators, ends when a run has no verdict, and gives its pods what they
// need.
func TestManifest(t *testing.T) {
	job := manifest(t)
	spec := &job.Spec
	if *spec.CompletionMode != batch.IndexedCompletion || *spec.Completions != *spec.Parallelism {
		t.Errorf("%+v", spec)
	}
	pod := &spec.Template.Spec
	c := &pod.Containers[0]
	if want := "--generators=" + string(rune('0'+*spec.Completions-1)); c.Args[0] != "run" ||
		!slices.Contains(c.Args, want) {
		t.Errorf("%d pods run %q, want %s", *spec.Completions, c.Args, want)
	}
	if rules := spec.PodFailurePolicy.Rules; len(rules) != 1 || rules[0].Action != batch.PodFailurePolicyActionFailJob ||
		rules[0].OnExitCodes.Operator != batch.PodFailurePolicyOnExitCodesOpIn ||
		!slices.Equal(rules[0].OnExitCodes.Values, []int32{exit.Gate, exit.Failed}) {
		t.Errorf("%+v", rules)
	}
	variables := map[string]string{}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			variables[e.Name] = e.ValueFrom.SecretKeyRef.Key
		}
	}
	if len(variables) != 2 || variables[group.StoreVariable("redis")] != "redis" ||
		variables["QUOTABENCH_MEET"] != "meet" {
		t.Errorf("%v", variables)
	}
	term := pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm
	for key, value := range term.LabelSelector.MatchLabels {
		if spec.Template.Labels[key] != value {
			t.Errorf("pods avoid %s=%s, and have %v", key, value, spec.Template.Labels)
		}
	}
	mounted(t, pod)
}

// TestUnknownFields: a field that the API does not know is seen.
func TestUnknownFields(t *testing.T) {
	text, err := os.ReadFile("../../examples/kubernetes/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job batch.Job
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(string(text), "completionMode:", "completionsMode:", 1)),
		&job); err == nil {
		t.Error("a field of another name is taken")
	}
}

// mounted requires that the container of a pod mounts its volumes.
func mounted(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	if !slices.Equal(volumes, mounts) {
		t.Errorf("volumes %q, mounts %q", volumes, mounts)
	}
}
