package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// access decides who may do what, by the files of a directory:
//
//	tokens.json      the name of the user of each token
//	roles.json       the rules of each user: a list of rbac PolicyRules, and the namespace
//	namespaces.json  the names of the namespaces that exist
//	client-ca.crt    the authority of client certificates, which name their user
type access struct{ dir string }

// grant is a Role with the namespace in which it is bound to the user.
type grant struct {
	Namespace string            `json:"namespace"`
	Rules     []rbac.PolicyRule `json:"rules"`
}

// admin is a user with all rights.
const admin = "admin"

func (a access) read(name string, into any) error {
	text, err := os.ReadFile(filepath.Join(a.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// AuthenticateRequest knows users by their client certificates or tokens, and is anonymous without
// one.
func (a access) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		authority, err := os.ReadFile(filepath.Join(a.dir, "client-ca.crt"))
		if err != nil {
			return nil, false, err
		}
		options := x509request.DefaultVerifyOptions()
		options.Roots = x509.NewCertPool()
		options.Roots.AppendCertsFromPEM(authority)
		return x509request.New(options, x509request.CommonNameUserConversion).AuthenticateRequest(r)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
	}
	var tokens map[string]string
	if err := a.read("tokens.json", &tokens); err != nil {
		return nil, false, err
	}
	name, known := tokens[token]
	if !known {
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}}, true, nil
}

// Authorize reads the rules of Roles as RBAC does.
func (a access) Authorize(_ context.Context, r authorizer.Attributes) (authorizer.Decision, string, error) {
	name := r.GetUser().GetName()
	switch {
	case name == admin, !r.IsResourceRequest() && r.IsReadOnly():
		return authorizer.DecisionAllow, "", nil
	case slices.Contains(r.GetUser().GetGroups(), user.SystemPrivilegedGroup):
		return authorizer.DecisionAllow, "", nil
	}
	var grants map[string]grant
	if err := a.read("roles.json", &grants); err != nil {
		return authorizer.DecisionDeny, "", err
	}
	g := grants[name]
	if g.Namespace == r.GetNamespace() && slices.ContainsFunc(g.Rules, func(rule rbac.PolicyRule) bool { return allows(rule, r) }) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// ConditionsAwareAuthorize decides as Authorize does.
func (a access) ConditionsAwareAuthorize(ctx context.Context, r authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, r))
}

// EvaluateConditions fails: no Role has conditions.
func (access) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

func allows(rule rbac.PolicyRule, r authorizer.Attributes) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	return r.IsResourceRequest() && has(rule.Verbs, r.GetVerb()) && has(rule.APIGroups, r.GetAPIGroup()) &&
		has(rule.Resources, r.GetResource()) && r.GetSubresource() == "" &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, r.GetName()))
}

// Handles says that creations are checked.
func (a access) Handles(o admission.Operation) bool { return o == admission.Create }

// Admit refuses objects in namespaces that do not exist, as an admission plugin of kube-apiserver
// does: before it validates the object.
func (a access) Admit(_ context.Context, o admission.Attributes, _ admission.ObjectInterfaces) error {
	var namespaces []string
	if err := a.read("namespaces.json", &namespaces); err != nil {
		return err
	}
	if slices.Contains(namespaces, o.GetNamespace()) {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, o.GetNamespace())
}
