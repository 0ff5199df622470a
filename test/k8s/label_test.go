//go:build integration

package k8s

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	pods "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/k8sd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

const labelFile = "leader-label.yaml"

// hookLine is in a comment of the recipe.
var hookLine = regexp.MustCompile(`\{name: TENURE_ON_CHANGE, value: (.*)\}`)

// pod is one that runs the hook of the recipe. Its files are those that a container has.
type pod struct {
	t       *testing.T
	name    string
	server  *k8sd.Server
	tenure  string
	account string // the directory with the token of its service account
	hook    string // TENURE_ON_CHANGE
}

// newPod makes a pod, without its process.
func newPod(t *testing.T, s *k8sd.Server, all pods.PodInterface, tenure, name, user string) *pod {
	t.Helper()
	dir := t.TempDir()
	ca, err := os.ReadFile(s.Config(user).CAFile)
	rig.Must(t, err)
	recipe, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", labelFile))
	rig.Must(t, err)
	for file, text := range map[string]string{
		"token": user, "ca.crt": string(ca), "namespace": k8sd.Namespace,
		"label.sh": k8sd.Documents[core.ConfigMap](t, labelFile, "ConfigMap")[0].Data["label.sh"],
		"config":   k8sd.Kubeconfig("https://"+s.Address(), "token: "+user),
	} {
		rig.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	_, err = all.Create(t.Context(), &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"app": "billing"}}}, meta.CreateOptions{})
	rig.Must(t, err)
	return &pod{t, name, s, tenure, dir, strings.Replace(hookLine.FindStringSubmatch(string(recipe))[1], "/hooks", dir, 1)}
}

// start starts its process.
func (p *pod) start() *command.Process {
	host, port, _ := strings.Cut(p.server.Address(), ":")
	return command.Start(p.t, "env", "TENURE_ID="+p.name, "TENURE_ON_CHANGE="+p.hook, "ACCOUNT="+p.account,
		"KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port, "KUBECONFIG="+filepath.Join(p.account, "config"),
		p.tenure, "run", "--store", "k8s:"+k8sd.Namespace+"/", "--election", "billing", "--lease", "2s", "--", "sleep", "1000000")
}

// TestRealLeaderLabel runs the recipe that labels the pod of the leader, on the library of the API
// server: the Service selects that pod. After a kill a pod keeps its label until it starts again.
func TestRealLeaderLabel(t *testing.T) {
	t.Parallel()
	server, err := k8sd.APIServer.Start(t.TempDir())
	rig.Must(t, err)
	t.Cleanup(server.End)
	client, err := kubernetes.NewForConfig(server.Config(k8sd.Admin))
	rig.Must(t, err)
	all, tenure := client.CoreV1().Pods(k8sd.Namespace), command.Build(t)
	candidate := k8sd.Documents[k8sd.Role](t, "lease.yaml", "Role")[0].Rules
	label := k8sd.Documents[k8sd.Role](t, labelFile, "Role")[0].Rules
	rig.Must(t, server.Bind("billing", k8sd.Namespace, slices.Concat(candidate, label)...))
	rig.Must(t, server.Bind("poor", k8sd.Namespace, candidate...))
	selector := labels.SelectorFromSet(k8sd.Documents[core.Service](t, labelFile, "Service")[0].Spec.Selector)
	selects := func(want ...string) {
		t.Helper()
		wait.Succeeds(t, fmt.Sprint("the Service selects ", want), func(ctx context.Context) error {
			list, err := all.List(ctx, meta.ListOptions{LabelSelector: selector.String()})
			if err != nil {
				return err
			}
			var got []string
			for i := range list.Items {
				got = append(got, list.Items[i].Name)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("it selects %v", got)
			}
			return nil
		})
	}
	a, b := newPod(t, server, all, tenure, "billing-a", "billing"), newPod(t, server, all, tenure, "billing-b", "billing")
	first := a.start()
	selects("billing-a")
	second := b.start()
	rig.Must(t, first.Stop())
	<-first.Ended()
	selects("billing-b")
	first = a.start()
	second.Kill()
	selects("billing-a", "billing-b") // as the recipe's page says
	second = b.start()
	selects("billing-a")
	rig.Must(t, second.Stop())
	<-second.Ended()
	rig.Must(t, first.Stop())
	<-first.Ended()
	selects()

	poor := newPod(t, server, all, tenure, "billing-c", "poor").start()
	wait.Until(t, "the hook's error", func() bool {
		return regexp.MustCompile(`the command of --on-change failed.*state=leader.*cannot patch resource`).MatchString(poor.Says())
	})
	selects()
}
