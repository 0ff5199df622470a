//go:build integration

package recipes

import (
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

const leaseFile = "deploy/kubernetes/lease.yaml"

// leased has the objects of the manifest: the candidate's Role comes before the observer's.
type leased struct {
	account    core.ServiceAccount
	binding    rbac.RoleBinding
	roles      [2]rbac.Role
	deployment apps.Deployment
}

func leaseManifest(t *testing.T) leased {
	t.Helper()
	var l leased
	decodeAll(t, leaseFile, map[string][]any{
		"v1 ServiceAccount":                        {&l.account},
		"rbac.authorization.k8s.io/v1 Role":        {&l.roles[0], &l.roles[1]},
		"rbac.authorization.k8s.io/v1 RoleBinding": {&l.binding},
		"apps/v1 Deployment":                       {&l.deployment},
	})
	return l
}

// TestLeaseRightsReachThePods: the pods have the service account to which the candidate's Role is
// bound. The tests of stores show that the Role is enough, and has no verb too many.
func TestLeaseRightsReachThePods(t *testing.T) {
	l := leaseManifest(t)
	pod := l.deployment.Spec.Template.Spec
	subject := rbac.Subject{Kind: "ServiceAccount", Name: pod.ServiceAccountName}
	switch {
	case pod.ServiceAccountName != l.account.Name || !slices.Contains(l.binding.Subjects, subject):
		t.Errorf("%q is not bound: %v", pod.ServiceAccountName, l.binding.Subjects)
	case l.binding.RoleRef != (rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: l.roles[0].Name}):
		t.Errorf("another Role is bound: %v", l.binding.RoleRef)
	case pod.AutomountServiceAccountToken != nil && !*pod.AutomountServiceAccountToken:
		t.Error("the pods get no token")
	}
}

// TestLeaseWrapsTheImage: the init container puts the command where the container starts it.
func TestLeaseWrapsTheImage(t *testing.T) {
	l := leaseManifest(t)
	pod := l.deployment.Spec.Template.Spec
	first, main := pod.InitContainers[0], pod.Containers[0]
	if to := first.Command[len(first.Command)-1]; to != main.Command[0] || !strings.HasPrefix(to, main.VolumeMounts[0].MountPath+"/") {
		t.Errorf("the command is copied to %s, and %s is started from %s", to, main.Command[0], main.VolumeMounts[0].MountPath)
	}
	if first.VolumeMounts[0].Name != main.VolumeMounts[0].Name || pod.Volumes[0].Name != main.VolumeMounts[0].Name {
		t.Error("the two containers do not share a volume")
	}
	if entry := build(t).named(t, "tenure").entrypoint(t); first.Command[0] != entry[0] || first.Command[1] != "install" {
		t.Errorf("runs %q, and the image has %s", first.Command, entry[0])
	}
}

// TestLeaseProbesNothing: a probe of leadership would kill followers, or stop an update at them.
func TestLeaseProbesNothing(t *testing.T) {
	l := leaseManifest(t)
	c := l.deployment.Spec.Template.Spec.Containers[0]
	if c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
		t.Error("a probe")
	}
	if update := l.deployment.Spec.Strategy.RollingUpdate; *l.deployment.Spec.Replicas < 2 || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("an update by %+v ends leaders before others have started", update)
	}
}

// leaseDeployment returns the manifest as a recipe.
func leaseDeployment(t *testing.T) recipe {
	t.Helper()
	pod := leaseManifest(t).deployment.Spec.Template.Spec
	c := pod.Containers[0]
	return recipe{
		name: leaseFile, args: slices.Concat(c.Command[1:], c.Args), env: map[string]string{"TENURE_STORE": "k8s:", "TENURE_ID": "metadata.name"},
		stop: time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second,
	}
}

// TestLabelFitsTheDeployment: the account of the pods has the right to label them, and the Service
// selects the label. TestRealLeaderLabel of test/k8s runs the hook.
func TestLabelFitsTheDeployment(t *testing.T) {
	var hooks core.ConfigMap
	var role rbac.Role
	var binding rbac.RoleBinding
	var service core.Service
	decode(t, "deploy/kubernetes/leader-label.yaml", map[string]any{
		"v1 ConfigMap": &hooks, "rbac.authorization.k8s.io/v1 Role": &role, "rbac.authorization.k8s.io/v1 RoleBinding": &binding, "v1 Service": &service,
	})
	l := leaseManifest(t)
	if !slices.Equal(binding.Subjects, l.binding.Subjects) || binding.RoleRef.Name != role.Name {
		t.Errorf("the Role is bound to %v, and that of candidates to %v", binding.Subjects, l.binding.Subjects)
	}
	for key, value := range service.Spec.Selector {
		if l.deployment.Spec.Template.Labels[key] != value && !strings.Contains(hooks.Data["label.sh"], `"`+key+`": '`) {
			t.Errorf("neither the pods nor the hook set %s", key)
		}
	}
}
