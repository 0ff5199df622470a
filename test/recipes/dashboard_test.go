//go:build integration

package recipes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"github.com/tenure-go/tenure/test/internal/command"
)

const (
	dashboardUnit     = "deploy/systemd/tenure-dashboard.service"
	dashboardManifest = "deploy/kubernetes/dashboard.yaml"
)

// dashboardPod is the manifest of the dashboard.
type dashboardPod struct {
	deployment apps.Deployment
	volume     core.PersistentVolumeClaim
	service    core.Service
}

func dashboardOf(t *testing.T) (d dashboardPod) {
	t.Helper()
	decode(t, dashboardManifest, map[string]any{
		"apps/v1 Deployment": &d.deployment, "v1 PersistentVolumeClaim": &d.volume, "v1 Service": &d.service,
	})
	return d
}

// Only the proxy can be reached, and the Service selects its pod.
func TestDashboardIsReachedThroughTheProxy(t *testing.T) {
	d := dashboardOf(t)
	pod := d.deployment.Spec.Template
	if !maps.Equal(d.service.Spec.Selector, pod.Labels) || !maps.Equal(d.deployment.Spec.Selector.MatchLabels, pod.Labels) {
		t.Errorf("%v and %v select other pods than %v", d.service.Spec.Selector, d.deployment.Spec.Selector, pod.Labels)
	}
	var names []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
		open := slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "0.0.0.0") })
		if want := c.Name == "proxy"; open != want || (len(c.Ports) > 0) != want {
			t.Errorf("container %s is reached from outside: %t, ports %v", c.Name, open, c.Ports)
		}
	}
	if !slices.Equal(names, []string{"dashboard", "proxy"}) {
		t.Errorf("the containers are %v", names)
	}
	if got := pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName; got != d.volume.Name {
		t.Errorf("the volume is %s, want %s", got, d.volume.Name)
	}
	if d.deployment.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType || *d.deployment.Spec.Replicas != 1 {
		t.Error("two pods may use one history")
	}
}

// The command lines serve the page, with the history in its own directory.
func TestDashboardsServe(t *testing.T) {
	container := dashboardOf(t).deployment.Spec.Template.Spec.Containers[0]
	for _, args := range map[string][]string{
		dashboardUnit: startOf(t, dashboardUnit), dashboardManifest: slices.Concat(container.Command[1:], container.Args),
	} {
		line := strings.Join(args, " ")
		for _, history := range []string{"/var/lib/tenure-dashboard", "/history/"} {
			line = strings.Replace(line, history, t.TempDir()+"/", 1)
		}
		path, err := program()
		must(t, err)
		env := []string{"TENURE_STORE=nats://user:password@127.0.0.1:1/ELECTIONS", "TENURE_LISTEN=0", path}
		command.Start(t, "env", append(env, strings.Fields(line)...)...).Await("(?m)^(The dashboard is at http://127.0.0.1:)")
	}
}
