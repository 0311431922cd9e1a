package kubernetes

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results/codec"
)

// redisAddress is Redis' in the network of the node, which pods share.
const redisAddress = "127.0.0.1:6379"

// policy has a limit and windows so long that all requests are in one.
const (
	policy = "100 requests per fixed 87600h"
	limit  = 100
)

// claimed is the folder behind the claim.
const claimed = "/var/lib/claimed"

// prerequisites are what a user has before a Job: the URLs of Redis and of NATS, and a place for records.
const prerequisites = `apiVersion: v1
kind: Secret
metadata: {name: quotabench}
stringData: {redis: "redis://` + redisAddress + `", meet: "nats://127.0.0.1:4222/test"}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: results}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: default, name: results}
  hostPath: {path: ` + claimed + `, type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: results}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: results
  resources: {requests: {storage: 1Gi}}
`

// TestJobOnKubelet: the Job of examples/kubernetes runs on a kubelet. Three pods share one load, and the record of the
// first pod has what Redis counted, a leak too. If one of them is killed or deleted, the first pod says so, gives no
// verdict, and leaves no keys.
func TestJobOnKubelet(t *testing.T) {
	dir := os.Getenv(nodeEnv)
	if dir == "" {
		needed(t)
		testenv.Long(t)
		dir := t.TempDir()
		for name, in := range map[string][2]string{"quotabench": {"../../full", "./cmd/quotabench"},
			"pause": {".", "./pause"}} {
			build := exec.CommandContext(t.Context(), "go", "build", "-C", in[0], "-ldflags=-s -w", "-o",
				filepath.Join(dir, name), in[1])
			build.Env = append(os.Environ(), "CGO_ENABLED=0") // an image has no libraries
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		enclosed(t, dir)
		return
	}
	n := startNode(t, dir)
	must(t, os.Mkdir(claimed, 0o700))
	must(t, os.Chmod(claimed, 0o777)) // pods are of another user
	n.apply(t, prerequisites)
	c := goredis.NewClient(&goredis.Options{Addr: redisAddress})
	defer c.Close() //nolint:errcheck // of a test
	t.Run("whole", func(t *testing.T) { n.whole(t, c) })
	t.Run("killed", func(t *testing.T) {
		n.broken(t, c, "killed", " is lost: its process or its connection has ended", func() {
			must(t, syscall.Kill(generator(t, 2), syscall.SIGKILL))
		})
	})
	t.Run("deleted", func(t *testing.T) {
		n.broken(t, c, "deleted", " failed: it was interrupted", func() { n.delete(t, "deleted", 2) })
	})
}

// share applies the Job for another run, whose record is kept, with a name and an image of the test's own.
func (n *node) share(t *testing.T, name string, args ...string) {
	t.Helper()
	job := manifest(t)
	job.Name = name
	pod := &job.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, core.Volume{Name: "results", VolumeSource: core.VolumeSource{
		PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: "results"}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: "results", MountPath: "/results"})
	c.Image = "quotabench.test/quotabench:1"
	c.Resources.Requests = core.ResourceList{core.ResourceCPU: resource.MustParse("100m"),
		core.ResourceMemory: resource.MustParse("256Mi")}
	c.Args = append([]string{"run", "check-then-set", "--workload", "steady:subjects=4", "--policy", policy, "--rounds",
		"1",
		"--generators", "3", "--out", "/results/" + name}, args...)
	text, err := yaml.Marshal(&job)
	must(t, err)
	n.apply(t, string(text))
}

func (n *node) whole(t *testing.T, c *goredis.Client) {
	saw := watch(t)
	n.share(t, "whole", "--requests", "2003", "--loop", "closed", "--workers", "4")
	lead := n.ended(t, "whole")
	t.Logf("the coordinator said:\n%s", lead.log)
	until(t, "the pods of four indexes succeed", func() bool {
		s := n.job(t, "whole").Status
		return s.Succeeded == 4 && s.CompletedIndexes == "0-3"
	})
	f, err := codec.Read(filepath.Join(claimed, "whole", "results.json"))
	must(t, err)
	if len(f.Runs) != 1 {
		t.Fatalf("%d runs", len(f.Runs))
	}
	saw.all(t, c)
	admitted, trials, leaked := saw.figures(limit)
	t.Logf("Redis counted %d admitted, %d trials and a leak of %d", admitted, trials, leaked)
	r := &f.Runs[0]
	if !r.Audit.Valid || r.Params.Sources != 3 || r.Issued != 2003 {
		t.Errorf("%d generators issued %d: %+v", r.Params.Sources, r.Issued, r.Audit)
	}
	if leaked == 0 || admitted == r.Issued || r.Admitted != admitted || r.Leak.Trials != trials ||
		r.Leak.Units != leaked || r.Leak.Possible != leaked {
		t.Errorf("the record has %d admitted, %+v", r.Admitted, r.Leak)
	}
	if want := fmt.Sprintf("round 1 of 3 generators: leak: certain %d, possible %[1]d", leaked); lead.exit != 0 ||
		!strings.Contains(lead.log, want) {
		t.Errorf("the coordinator ended with %d; want %q", lead.exit, want)
	}
	noKeys(t, c)
}

// broken has one of three generators end during the load. The coordinator ends soon, with the reason, and so does the
// Job.
func (n *node) broken(t *testing.T, c *goredis.Client, name, why string, end func()) {
	saw := watch(t)
	n.share(t, name, "--duration", "2m", "--loop", "open", "--rate", "300")
	until(t, "the run is under way", func() bool {
		admitted, _, _ := saw.figures(limit)
		return admitted > 300
	})
	at := clock.Wall{}.Now()
	end()
	lead := n.ended(t, name)
	took := lead.at.Sub(at) + time.Second // of which the fraction is left out
	t.Logf("the coordinator, which ended %v after a generator at most:\n%s", took, lead.log)
	if lead.exit != 3 || !strings.Contains(lead.log, "generator 2 ") || !strings.Contains(lead.log, why) {
		t.Errorf("the coordinator ended with %d", lead.exit)
	}
	if took > 30*time.Second {
		t.Error("that is late")
	}
	until(t, "the Job ends", func() bool { return slices.ContainsFunc(n.job(t, name).Status.Conditions, failed) })
	took = clock.Wall{}.Now().Sub(at)
	t.Logf("the Job ended %v after that generator: %+v", took, n.job(t, name).Status.Conditions)
	if took > time.Minute {
		t.Error("that is late")
	}
	noKeys(t, c)
	f, err := codec.Read(filepath.Join(claimed, name, "results.json"))
	must(t, err)
	if len(f.Runs) != 1 || !f.Interrupted || f.Runs[0].Audit.Valid {
		t.Errorf("the record without a generator: %+v", f.Runs)
	}
}

// failed is the condition of a Job that its policy for failed pods has ended.
func failed(c batch.JobCondition) bool {
	return c.Type == batch.JobFailed && c.Reason == batch.JobReasonPodFailurePolicy
}

// delete removes the pod of an index as kubectl delete pod does.
func (n *node) delete(t *testing.T, job string, index int) {
	t.Helper()
	var pods core.PodList
	must(t, n.call(t, http.MethodGet, "/api/v1/namespaces/default/pods?labelSelector=job-name="+job, nil, &pods))
	for _, p := range pods.Items {
		if p.Labels[batch.JobCompletionIndexAnnotation] == strconv.Itoa(index) {
			must(t, n.call(t, http.MethodDelete, "/api/v1/namespaces/default/pods/"+p.Name, nil, nil))
			return
		}
	}
	t.Fatalf("%s has no pod of index %d", job, index)
}

func noKeys(t *testing.T, c *goredis.Client) {
	t.Helper()
	if left, err := c.Keys(t.Context(), "*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left in Redis: %q, %v", left, err)
	}
}

func (n *node) job(t *testing.T, name string) (j batch.Job) {
	t.Helper()
	must(t, n.call(t, http.MethodGet, "/apis/batch/v1/namespaces/default/jobs/"+name, nil, &j))
	return j
}

// end is how a pod ended.
type end struct {
	exit int32
	at   time.Time
	log  string
}

// ended waits for the first pod of a Job, which makes the record.
func (n *node) ended(t *testing.T, job string) (e end) {
	t.Helper()
	var name string
	until(t, "the pod of "+job+" ends", func() bool {
		var pods core.PodList
		must(t, n.call(t, http.MethodGet, "/api/v1/namespaces/default/pods?labelSelector=job-name="+job+","+
			batch.JobCompletionIndexAnnotation+"=0", nil, &pods))
		if len(pods.Items) == 0 || len(pods.Items[0].Status.ContainerStatuses) == 0 {
			return false
		}
		x := pods.Items[0].Status.ContainerStatuses[0].State.Terminated
		if x == nil {
			return false
		}
		name = pods.Items[0].Name
		e.exit = x.ExitCode
		e.at = x.FinishedAt.Time
		return true
	})
	must(t, n.call(t, http.MethodGet, "/api/v1/namespaces/default/pods/"+name+"/log", nil, &e.log))
	return e
}

// generator is the process of a generator that runs in a pod.
func generator(t *testing.T, number int) int {
	t.Helper()
	index := fmt.Sprintf("\x00JOB_COMPLETION_INDEX=%d\x00", number)
	role := "\x00--generators\x00"
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range all {
		environment, _ := os.ReadFile(process + "/environ") // it may have ended
		line, _ := os.ReadFile(process + "/cmdline")
		if strings.Contains("\x00"+string(environment), index) && strings.Contains(string(line), role) {
			pid, err := strconv.Atoi(filepath.Base(process))
			must(t, err)
			return pid
		}
	}
	t.Fatalf("generator %d does not run", number)
	return 0
}

// seen is what Redis says that it does for the subjects of a run, by their keys.
type seen struct {
	mu    sync.Mutex
	keys  map[string]*used
	marks chan struct{}
}

// used is how often a subject was asked for, and how often it was admitted. Each time it is for one unit.
type used struct{ asked, admitted int64 }

var (
	// aside are the subjects of the instrument's own.
	aside = regexp.MustCompile(`:(warm-up|cost-probe)-`)
	// call is what check-then-set does: it reads what a subject has used, and writes one more if there is room.
	call = regexp.MustCompile(`(?i)\] "(get|set)" "([^"]*:used)"(?: "([0-9]+)")?`)
)

// mark is what [seen.all] has Redis say.
const mark = "seen until here"

// watch follows Redis from now on.
func watch(t *testing.T) *seen {
	t.Helper()
	conn, err := net.Dial("tcp", redisAddress)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	must(t, err)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<24)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	s := &seen{keys: map[string]*used{}, marks: make(chan struct{}, 1)}
	go func() {
		for lines.Scan() {
			s.line(lines.Text())
		}
	}()
	return s
}

func (s *seen) line(text string) {
	if strings.Contains(text, mark) {
		s.marks <- struct{}{}
	}
	m := call.FindStringSubmatch(text)
	if m == nil || aside.MatchString(text) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[m[2]] == nil {
		s.keys[m[2]] = new(used)
	}
	switch x := s.keys[m[2]]; {
	case strings.EqualFold(m[1], "get"):
		x.asked++
	case m[3] != "0": // which provisions it
		x.admitted++
	}
}

// figures are those that the record of the run has to have: admitted units, windows of which more than the limit was
// asked, and units that these admitted beyond it.
func (s *seen) figures(limit int64) (admitted, trials, leaked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.keys {
		admitted += x.admitted
		leaked += max(0, x.admitted-limit)
		if x.asked > limit {
			trials++
		}
	}
	return admitted, trials, leaked
}

// all waits until what was done before has been seen.
func (s *seen) all(t *testing.T, c *goredis.Client) {
	t.Helper()
	must(t, c.Echo(t.Context(), mark).Err())
	select {
	case <-s.marks:
	case <-time.After(patience):
		t.Fatal("Redis says nothing any longer")
	}
}
