package kubernetes

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

const (
	nodeEnv  = "QUOTABENCH_TEST_NODE" // the directory of the process that is the node
	nodeName = "node"
	// address is the node's. Kubernetes takes none of 127.0.0.0/8, and the node's network has no other interface.
	address  = "10.77.0.1"
	token    = "token"
	patience = 3 * time.Minute
)

// programOf returns the path of a program of the node.
func programOf(t *testing.T, name string) string {
	t.Helper()
	paths := testenv.Programs(t, "kubelet")
	return paths[slices.IndexFunc(paths, func(path string) bool { return filepath.Base(path) == name })]
}

// needed skips the test if something that a node needs is missing.
func needed(t *testing.T) {
	t.Helper()
	testenv.Programs(t, "kubelet")
	if os.Geteuid() != 0 {
		programs.Need(t, "kubelet", errors.New("only root can run a kubelet"))
	}
}

// enclosed runs the test again in a process that has processes, mounts and a network of its own. With that process
// all of them end, however it ends. What remains are control groups.
func enclosed(t *testing.T, dir string) {
	t.Helper()
	before := groups()
	runtime.LockOSThread() // the process ends with the thread that started it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), nodeEnv+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	for _, group := range groups() {
		removeGroup(group)
	}
	if left := groups(); len(before) == 0 && len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// groups are the control groups that containerd makes for Kubernetes: one, or one for each resource.
func groups() (all []string) {
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io"} {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	return all
}

// removeGroup removes a control group and those below it, as far as no process is in one.
func removeGroup(group string) {
	var all []string
	_ = filepath.WalkDir(group, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	for _, path := range slices.Backward(all) {
		_ = syscall.Rmdir(path) // the caller looks what is left
	}
}

// node is a machine of Kubernetes with its control plane.
type node struct{ client *http.Client }

// files are what programs read, by path.
var files = map[string]string{
	"/var/lib/tokens.csv": token + ",admin,1\n",
	"/var/lib/kubeconfig": `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: ` + token + `}}]}
`,
	"/var/lib/kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volume-plugins
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: [none]
evictionHard: {memory.available: 50Mi}
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
`,
	"/var/lib/containerd.toml": `version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "quotabench.test/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "/var/lib/cni"
`,
}

// startNode makes a node of this process.
func startNode(t *testing.T, dir string) *node {
	t.Helper()
	n := &node{&http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nobody else is in this network
	}}}
	must(t, mount(dir))
	t.Cleanup(func() { n.tell(t) })
	for path, text := range files {
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, writeKey("/var/lib/key.pem"))
	run(t, "ip", "link", "set", "lo", "up")
	run(t, "ip", "address", "add", address+"/32", "dev", "lo")
	n.start(t, "redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", "/var/lib")
	n.start(t, "nats-server", "--addr", "127.0.0.1")
	n.start(t, "etcd", "--data-dir=/var/lib/etcd")
	n.start(t, "containerd", "--config=/var/lib/containerd.toml")
	n.start(t, programOf(t, "kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--cert-dir=/var/lib/apiserver", "--token-auth-file=/var/lib/tokens.csv", "--authorization-mode=AlwaysAllow",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=/var/lib/key.pem",
		"--service-account-signing-key-file=/var/lib/key.pem", "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.96.0.0/24", "--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP")
	until(t, "the API server is ready", func() bool {
		return n.call(t, http.MethodGet, "/readyz", nil, nil) == nil &&
			n.call(t, http.MethodGet, "/api/v1/namespaces/default", nil, nil) == nil
	})
	n.start(t, programOf(t, "kube-controller-manager"), "--kubeconfig=/var/lib/kubeconfig", "--cert-dir=/var/lib/manager",
		"--leader-elect=false",
		"--bind-address=127.0.0.1", "--controllers=job-controller,persistentvolume-binder-controller")
	until(t, "containerd answers", func() bool {
		return exec.CommandContext(t.Context(), programOf(t, "ctr"), "version").Run() == nil
	})
	for _, name := range []string{"pause", "quotabench"} {
		must(t, writeImage(filepath.Join(dir, name), "/var/lib/image.tar"))
		run(t, "ctr", "--namespace", "k8s.io", "images", "import", "/var/lib/image.tar")
	}
	n.start(t, programOf(t, "kubelet"), "--config=/var/lib/kubelet.yaml", "--kubeconfig=/var/lib/kubeconfig",
		"--hostname-override="+nodeName, "--node-ip="+address)
	until(t, "the node is there", func() bool {
		return n.call(t, http.MethodGet, "/api/v1/nodes/"+nodeName, nil, nil) == nil
	})
	return n
}

// mount gives this process the files that programs write: in memory, and beside this machine's own. A kubelet sets
// parameters of the kernel, which are files here instead.
func mount(dir string) error {
	err := errors.Join(syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""))
	for _, path := range []string{"/run", "/var/lib", "/var/log"} {
		err = errors.Join(err, syscall.Mount("tmpfs", path, "tmpfs", 0, "mode=755"))
	}
	for i, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		path := "/proc/sys/" + name
		shadow := filepath.Join(dir, fmt.Sprint("parameter-", i))
		value, read := os.ReadFile(path)
		err = errors.Join(err, read, os.WriteFile(shadow, value, 0o600), syscall.Mount(shadow, path, "", syscall.MS_BIND, ""))
	}
	return errors.Join(err, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""))
}

// writeKey writes a key that tokens are signed with.
func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	b, err := x509.MarshalECPrivateKey(key)
	return errors.Join(err, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b}), 0o600))
}

// writeImage writes an image that has a program and nothing else, as docker save does. Its name is the program's.
func writeImage(program, path string) error {
	b, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	name := filepath.Base(program)
	layer := archived(name, b)
	config := fmt.Sprintf(`{"architecture": %q, "os": "linux", "config": {"Entrypoint": ["/%s"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`,
		runtime.GOARCH, name, sha256.Sum256(layer))
	manifest := fmt.Sprintf(`[{"Config": "config.json", "RepoTags": ["quotabench.test/%s:1"], "Layers": ["layer.tar"]}]`, name)
	return os.WriteFile(path, archived("manifest.json", []byte(manifest), "config.json", []byte(config), "layer.tar",
		layer), 0o600)
}

// archived is a tar of files, each given by its name and its content.
func archived(of ...any) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for pair := range slices.Chunk(of, 2) {
		content := pair[1].([]byte)
		_ = w.WriteHeader(&tar.Header{Name: pair[0].(string), Mode: 0o755, Size: int64(len(content))}) // to memory
		_, _ = w.Write(content)
	}
	_ = w.Close()
	return b.Bytes()
}

// start starts a program that runs until this process ends.
func (n *node) start(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join("/var/log", filepath.Base(program)+".log"))
	must(t, err)
	cmd := exec.Command(program, args...)
	cmd.Stdout = log
	cmd.Stderr = log
	must(t, cmd.Start())
	go func() {
		_, _ = fmt.Fprintln(log, "ended:", cmd.Wait())
	}()
}

// tell shows the ends of all logs if the test has failed.
func (n *node) tell(t *testing.T) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob("/var/log/*.log")
	pods, _ := filepath.Glob("/var/log/pods/*/*/*.log")
	for _, path := range append(logs, pods...) {
		b, _ := os.ReadFile(path)
		t.Logf("== %s\n%s", path, b[max(0, len(b)-4000):])
	}
}

// call asks the API server. What is sent is YAML; what comes is JSON, or text if into is a string.
func (n *node) call(t *testing.T, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1:6443"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/yaml")
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, b)
	}
	if text, is := into.(*string); is {
		*text = string(b)
	} else if err == nil && into != nil {
		err = json.Unmarshal(b, into)
	}
	return err
}

// apply creates objects as kubectl does, and has the API server refuse fields that it does not know. The node has no
// scheduler and no network of pods. So its name and its network are added to pods, and nothing else is changed.
func (n *node) apply(t *testing.T, manifests string) {
	t.Helper()
	for _, doc := range strings.Split(manifests, "\n---\n") {
		var job batch.Job
		must(t, yaml.Unmarshal([]byte(doc), &job)) // any object has its kind there
		body := []byte(doc)
		path := "/api/v1/namespaces/default/" + strings.ToLower(job.Kind) + "s"
		switch job.Kind {
		case "Job":
			path = "/apis/batch/v1/namespaces/default/jobs"
			must(t, yaml.UnmarshalStrict([]byte(doc), &job))
			pod := &job.Spec.Template.Spec
			pod.NodeName = nodeName
			pod.HostNetwork = true
			var err error
			body, err = yaml.Marshal(&job)
			must(t, err)
		case "PersistentVolume":
			path = "/api/v1/persistentvolumes"
		}
		must(t, n.call(t, http.MethodPost, path+"?fieldValidation=Strict", body, nil))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// until waits for what will be.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := (clock.Wall{}).Now().Add(patience); !is(); {
		if (clock.Wall{}).Now().After(end) {
			t.Fatalf("it is not so after %v: %s", patience, what)
		}
		must(t, clock.Wall{}.Sleep(t.Context(), 100*time.Millisecond))
	}
}
