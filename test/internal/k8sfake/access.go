package k8sfake

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// access decides who may do what, by the files of a directory:
//
//	tokens.json      the name of the user of each token
//	roles.json       the namespace and the rules of each user, as in a Role
//	namespaces.json  the names of the namespaces that exist
//	client-ca.crt    the authority of client certificates, which name their user
type access struct{ dir string }

type grant struct {
	Namespace string
	Rules     []struct{ APIGroups, Resources, Verbs, ResourceNames []string }
}

func (a access) read(name string, into any) {
	if text, err := os.ReadFile(filepath.Join(a.dir, name)); err == nil {
		_ = json.Unmarshal(text, into)
	}
}

// check returns a refusal unless the user is known and has the right.
func (a access) check(r *http.Request, q request) *refusal {
	var tokens map[string]string
	a.read("tokens.json", &tokens)
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, known := tokens[token]
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		given = true
		user, known = a.certified(r.TLS.PeerCertificates[0])
	}
	switch {
	case given && !known:
		return &refusal{http.StatusUnauthorized, "Unauthorized", "Unauthorized", ""}
	case !given:
		user = "system:anonymous"
	}
	if a.dir == "" || user == "admin" || a.allows(user, q) {
		return nil
	}
	return &refusal{http.StatusForbidden, "Forbidden", fmt.Sprintf("leases.coordination.k8s.io %q is forbidden: User %q cannot %s resource "+
		`"leases" in API group "coordination.k8s.io" in the namespace %q`, q.name, user, q.verb, q.namespace), "leases"}
}

// certified returns the user of a client certificate.
func (a access) certified(cert *x509.Certificate) (user string, ok bool) {
	authority, _ := os.ReadFile(filepath.Join(a.dir, "client-ca.crt"))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return cert.Subject.CommonName, err == nil
}

func (a access) allows(user string, q request) bool {
	var grants map[string]grant
	a.read("roles.json", &grants)
	g := grants[user]
	for _, rule := range g.Rules {
		if g.Namespace == q.namespace && slices.Contains(rule.Verbs, q.verb) && slices.Contains(rule.APIGroups, "coordination.k8s.io") &&
			slices.Contains(rule.Resources, "leases") && (len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.name)) {
			return true
		}
	}
	return false
}

func (a access) exists(namespace string) bool {
	if a.dir == "" {
		return true
	}
	var all []string
	a.read("namespaces.json", &all)
	return slices.Contains(all, namespace)
}
