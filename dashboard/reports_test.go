package dashboard

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/members"
	"github.com/tenure-go/tenure/internal/test/able"
)

// A process whose address the name no longer has is forgotten. If the lookup fails, all are kept,
// and the failure is reported.
func TestProcessesThatWentAreForgotten(t *testing.T) {
	r := newReports(&Source{Name: "store"}, newHub(), func(string) bool { return true })
	const name = "dns+http://workers:9464/member"
	a, b := members.Address{URL: "http://10.0.0.1:9464/member"}, members.Address{URL: "http://10.0.0.2:9464/member"}
	ids := func() (all []string) {
		for _, m := range r.members("billing") {
			all = append(all, m.ID)
		}
		return all
	}
	r.keep(name, []members.Address{a, b}, false)
	r.take(a.URL, []tenure.Member{{Election: "billing", ID: "a"}}, nil)
	r.take(b.URL, []tenure.Member{{Election: "billing", ID: "b"}}, nil)
	r.keep(name, nil, true)
	r.take(name, nil, errors.New("no such host"))
	if got, silent := ids(), r.silent(); !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(silent, []string{name + ": no such host"}) {
		t.Errorf("while the name cannot be looked up: %q, silent are %q", got, silent)
	}
	r.keep(name, []members.Address{b}, false)
	if got, silent := ids(), r.silent(); !slices.Equal(got, []string{"b"}) || len(silent) != 0 {
		t.Errorf("after a has gone: %q, silent are %q", got, silent)
	}
}

// A dashboard that shares its store with candidates, and one that acts, keep to the limits of the
// store. No push passes by the check of an action.
func TestStoresOfTheDashboardKeepAbilities(t *testing.T) {
	acting := able.Answers(t.Context(), able.Store{})
	for _, hidden := range []string{"Watcher", "PeerPushed", "LeaseLimiter"} {
		delete(acting, hidden)
	}
	if got := able.Answers(t.Context(), &checkedStore{Store: able.Store{}}); !maps.Equal(got, acting) {
		t.Errorf("acting: %v, want %v", got, acting)
	}
	all := able.Answers(t.Context(), able.Store{})
	if got := able.Answers(t.Context(), limitReads(able.Store{})); !maps.Equal(got, all) {
		t.Errorf("reading: %v, want %v", got, all)
	}
}
