package k8sd

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Mistakes returns clients with other servers, credentials and namespaces.
func (s site) Mistakes(t testing.TB) (all []rig.Client) {
	const every = rig.All + " inspect"
	add := func(name, fails, says string, denied bool, change func(*rest.Config) (namespace string)) {
		all = append(all, rig.Client{
			Name: name, Fails: fails, Says: rig.Says(says), Denied: denied, Elsewhere: fails != every,
			Open: func(t testing.TB) (driver.Store, error) {
				config := s.Config(Admin)
				return s.store(t, config, change(config)), nil
			},
		})
	}
	here := func(change func(*rest.Config)) func(*rest.Config) string {
		return func(c *rest.Config) string { change(c); return Namespace }
	}
	add("none", "", "", false, here(func(*rest.Config) {}))
	add("expired token", every, "renew the token of the configuration", true, here(func(c *rest.Config) { c.BearerToken = rig.Secret }))
	ca, renew := certificates.Renewed(t)
	rig.Must(t, s.trust(ca))
	certified := func(member string, lifetime time.Duration) func(*rest.Config) string {
		cert, key := renew(member, lifetime, func(c *x509.Certificate) { c.Subject.CommonName = Admin })
		return here(func(c *rest.Config) { c.BearerToken, c.CertFile, c.KeyFile = "", cert, key })
	}
	add("client certificate", "", "", false, certified("valid", time.Hour))
	add("expired client certificate", every, "expired-cert.pem, which expired at", true, certified("expired-", -time.Minute))
	add("no credentials", every, "name a user", true, here(func(c *rest.Config) { c.BearerToken = "" }))
	add("unknown authority", every, "certificate", false, here(func(c *rest.Config) { c.CAFile = "" }))
	// The server may reset the connection.
	add("no TLS", every, "", false, here(func(c *rest.Config) {
		c.Host, c.TLSClientConfig = strings.Replace(c.Host, "https", "http", 1), rest.TLSClientConfig{}
	}))
	add("another path", every, "check the address", false, here(func(c *rest.Config) { c.Host += "/elsewhere" }))
	add("no such namespace", "insert rights", "create the namespace", false, func(*rest.Config) string { return "nowhere" })
	return all
}

// Documents returns those of a kind in a file of deploy/kubernetes. The test is two directories
// below the root.
func Documents[T any](t testing.TB, file, kind string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kubernetes", file))
	rig.Must(t, err)
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var is struct{ Kind string }
		rig.Must(t, yaml.Unmarshal(document, &is))
		if is.Kind == kind {
			var one T
			rig.Must(t, yaml.Unmarshal(document, &one))
			all = append(all, one)
		}
	}
	return all
}

// Role is one of RBAC.
type Role struct {
	Metadata struct{ Name string }
	Rules    []Rule
}

// documented returns the rules of a Role in deploy/kubernetes/lease.yaml.
func documented(t testing.TB, role string) []Rule {
	t.Helper()
	for _, r := range Documents[Role](t, "lease.yaml", "Role") {
		if r.Metadata.Name == role {
			return r.Rules
		}
	}
	t.Fatalf("the recipe has no Role %s", role)
	return nil
}

// Rights returns clients with the documented Roles, and without one verb of them.
func (s site) Rights(t testing.TB) (all []rig.Client) {
	add := func(name, role, without, fails string) {
		// The first verb that a call lacks is in its error.
		says := map[string]string{
			"read": "cannot get", "insert": "cannot create", "update": "cannot update", "rights": "cannot update",
			"inspect": "cannot list", "watch": "cannot watch",
		}
		switch without {
		case "get":
			says["update"] = "cannot get"
		case "list":
			says["watch"] = "cannot list"
		case "create":
			says["rights"] = "cannot create"
		}
		rules := documented(t, role)
		for i := range rules {
			rules[i].Verbs = slices.DeleteFunc(rules[i].Verbs, func(verb string) bool { return verb == without })
		}
		user := strings.ReplaceAll(name, " ", "-")
		all = append(all, rig.Client{
			Name: name, Fails: fails, Denied: true, Says: says,
			Open: func(t testing.TB) (driver.Store, error) {
				rig.Must(t, s.Bind(user, Namespace, rules...))
				return s.store(t, s.Config(user), Namespace), nil
			},
		})
	}
	// A client that has not seen the version reads before it updates.
	const candidate, observer = "tenure-candidate", "tenure-observer"
	add("candidate", candidate, "", "")
	add("candidate without get", candidate, "get", "read update")
	add("candidate without list", candidate, "list", "inspect watch")
	add("candidate without watch", candidate, "watch", "watch")
	add("candidate without create", candidate, "create", "insert rights")
	add("candidate without update", candidate, "update", "update rights")
	add("observer", observer, "", "insert update rights")
	add("observer without get", observer, "get", "read insert update rights")
	add("observer without list", observer, "list", "insert update rights inspect watch")
	add("observer without watch", observer, "watch", "insert update rights watch")
	return all
}

// Rotations replaces the token in a file, as a Pod's is, and the one in the file that a kubeconfig
// names.
func (s site) Rotations(t testing.TB) []*rotation.Play {
	file, hand := rotation.File(t, "token", "SECRET")
	config := filepath.Join(t.TempDir(), "config")
	text := Kubeconfig("https://"+s.Address(), fmt.Sprintf("tokenFile: %q", file))
	rig.Must(t, os.WriteFile(config, []byte(text), 0o600))
	rig.Must(t, s.Bind("member", Namespace, documented(t, "tenure-candidate")...))
	return []*rotation.Play{{
		Name: "token file", Args: []string{"--store", "k8s:" + Namespace + "/"}, Env: []string{"KUBECONFIG=" + config},
		Store: s.store(t, s.Config(Admin), Namespace), Hand: hand, Refusal: "does not accept the credentials",
		Accept: func(secret string) { rig.Must(t, s.Accept("member", secret)) },
	}}
}
