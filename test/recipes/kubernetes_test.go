//go:build integration

package recipes

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	split "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const manifestFile = "deploy/kubernetes/billing.yaml"

// cluster has the objects of the manifest.
type cluster struct {
	Deployment apps.Deployment
	Budget     policy.PodDisruptionBudget
}

func manifest(t *testing.T) cluster {
	t.Helper()
	var c cluster
	decode(t, manifestFile, map[string]any{"apps/v1 Deployment": &c.Deployment, "policy/v1 PodDisruptionBudget": &c.Budget})
	return c
}

// decode decodes one document of each kind.
func decode(t *testing.T, file string, into map[string]any) {
	t.Helper()
	all := map[string][]any{}
	for name, one := range into {
		all[name] = []any{one}
	}
	decodeAll(t, file, all)
}

// decodeAll decodes into the types of Kubernetes' own API, and refuses any unknown field.
func decodeAll(t *testing.T, file string, into map[string][]any) {
	t.Helper()
	documents := split.NewYAMLReader(bufio.NewReader(strings.NewReader(text(t, file))))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var kind meta.TypeMeta
		must(t, errors.Join(err, yaml.Unmarshal(document, &kind)))
		name := kind.APIVersion + " " + kind.Kind
		if len(into[name]) == 0 {
			t.Fatalf("unexpected: %s", name)
		}
		if err := yaml.UnmarshalStrict(document, into[name][0]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if into[name] = into[name][1:]; len(into[name]) == 0 {
			delete(into, name)
		}
	}
	if len(into) != 0 {
		t.Fatalf("missing: %v", into)
	}
}

// container returns the only container.
func (c cluster) container(t *testing.T) core.Container {
	t.Helper()
	all := c.Deployment.Spec.Template.Spec.Containers
	if len(all) != 1 {
		t.Fatalf("%d containers", len(all))
	}
	return all[0]
}

// deployment returns the manifest as a recipe. Values from elsewhere are named after their source.
func deployment(t *testing.T) recipe {
	t.Helper()
	m := manifest(t)
	c := m.container(t)
	r := recipe{name: manifestFile, args: slices.Concat(c.Command[1:], c.Args), env: map[string]string{}}
	for _, v := range c.Env {
		r.env[v.Name] = v.Value
		if from := v.ValueFrom; from != nil && from.FieldRef != nil {
			r.env[v.Name] = from.FieldRef.FieldPath
		}
	}
	if grace := m.Deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; grace != nil {
		r.stop = time.Duration(*grace) * time.Second
	}
	return r
}

func TestDeploymentStartsTenureOfTheImage(t *testing.T) {
	c := manifest(t).container(t)
	if entry := build(t).last().entrypoint(t); c.Command[0] != entry[0] {
		t.Errorf("runs %s, and the image has %s", c.Command[0], entry[0])
	}
}

func TestDeploymentTakesItsStoreFromASecret(t *testing.T) {
	for _, v := range manifest(t).container(t).Env {
		if v.Name == "TENURE_STORE" && v.Value == "" && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
			return
		}
	}
	t.Error("TENURE_STORE does not")
}

// A probe of leadership would kill followers, or stop an update at them.
func TestDeploymentDoesNotProbeLeadership(t *testing.T) {
	m := manifest(t)
	c := m.container(t)
	if c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil {
		t.Error("a probe")
	}
	// The time within which a pod ends if its store cannot be opened.
	const connect = 30
	if got := m.Deployment.Spec.MinReadySeconds; got <= connect {
		t.Errorf("a pod counts as available after %d s, and may end after %d s without its store", got, connect)
	}
}

func TestDeploymentAlwaysHasACandidate(t *testing.T) {
	m := manifest(t)
	spec := m.Deployment.Spec
	if *spec.Replicas < 2 {
		t.Error("there is no standby")
	}
	if update := spec.Strategy.RollingUpdate; spec.Strategy.Type != apps.RollingUpdateDeploymentStrategyType || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("an update by %+v ends leaders before others have started", spec.Strategy)
	}
	if m.Budget.Spec.MinAvailable.IntValue() < 1 || int32(m.Budget.Spec.MinAvailable.IntValue()) >= *spec.Replicas {
		t.Errorf("%v available of %d: nodes cannot be drained, or all at once", m.Budget.Spec.MinAvailable, *spec.Replicas)
	}
	pods := labels.Set(spec.Template.Labels)
	selectors := map[string]*meta.LabelSelector{"deployment": spec.Selector, "budget": m.Budget.Spec.Selector}
	for _, spread := range spec.Template.Spec.TopologySpreadConstraints {
		selectors["spread over "+spread.TopologyKey] = spread.LabelSelector
	}
	for what, s := range selectors {
		if selector, err := meta.LabelSelectorAsSelector(s); err != nil || selector.Empty() || !selector.Matches(pods) {
			t.Errorf("%s: %v selects other pods than %v (%v)", what, s, pods, err)
		}
	}
}

// The kernel forgets the parent-death signal of a program that changes its user.
func TestDeploymentKeepsTheUserOfTheProgram(t *testing.T) {
	s := manifest(t).container(t).SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 {
		t.Errorf("got %+v", s)
	}
}
