package k8slease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

// Keys returns the sorted keys of the Leases in the namespace, also of other electors, but not of
// those that were never held.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8slease: list the Leases in namespace %s: %w", s.client.namespace, err)
	}
	keys := []string{}
	for _, l := range all {
		if key := l.key(); len(l.value()) > 0 && s.CheckKey(key) == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

func (s *Store) all(ctx context.Context) ([]*lease, error) {
	all, err := abandon.Run(ctx, &s.calls, func() (listed, error) {
		return s.list(ctx, s.history.before(""), nil)
	}, abandon.NoUndo)
	return all.items, err
}

// many is a number of Leases that makes a watch of the whole namespace costly.
const many = 1000

// Inspect reports Leases that other controllers remove, and a namespace whose watch is costly
// because of other Leases.
func (s *Store) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("k8slease: inspect namespace %s: %w", s.client.namespace, err)
	}
	var found []driver.Finding
	others := 0
	for _, l := range all {
		if _, ours := l.annotations[recordAnnotation]; !ours {
			others++
			continue
		}
		if owners := l.owners(); len(owners) > 0 {
			found = append(found, driver.Finding{
				Severity: driver.Warning, Setting: "metadata.ownerReferences",
				Problem: fmt.Sprintf("Lease %s is deleted together with its owner %s, and then no candidate leads for one lease", l.name, owners[0]),
				Remedy: fmt.Sprintf("kubectl -n %s patch lease %s --type merge -p '{\"metadata\":{\"ownerReferences\":null}}'",
					s.client.namespace, l.name),
			})
		}
	}
	if others > many {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: "namespace",
			Problem: fmt.Sprintf("the namespace has %d Leases of others, and each candidate watches all of them", others),
			Remedy:  "use a namespace without them",
		})
	}
	return found, nil
}

// owners returns the owners of a Lease, as Kind/name.
func (l *lease) owners() (all []string) {
	var refs []struct{ Kind, Name string }
	if json.Unmarshal(l.metadata["ownerReferences"], &refs) == nil {
		for _, r := range refs {
			all = append(all, r.Kind+"/"+r.Name)
		}
	}
	return all
}

// noUID is the uid of no object.
const noUID = "00000000-0000-0000-0000-000000000000"

// CheckRights sends two requests that the server refuses in any case: an update of a Lease with
// another uid, and the creation of a Lease whose name is not valid. The server checks the rights
// first. Both are also marked as dry runs.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	_, err := run(ctx, s, key, func() (struct{}, error) { return struct{}{}, s.checkRights(ctx, key) })
	if err != nil {
		return fmt.Errorf("k8slease: check the rights on %s: %w", s.place(key), err)
	}
	return nil
}

func (s *Store) checkRights(ctx context.Context, key string) error {
	dry := url.Values{"dryRun": {"All"}}
	var ignored json.RawMessage
	none := &lease{name: Name(key), uid: noUID, revision: 1}
	update := s.client.call(ctx, http.MethodPut, s.client.path(none.name, dry), none, &ignored)
	create := s.client.call(ctx, http.MethodPost, s.client.path("", dry), &lease{name: "-"}, &ignored)
	for _, err := range []error{update, create} {
		var refused *StatusError
		switch {
		case err == nil:
			return errors.New("the API server carried out a request that is not valid")
		case !errors.As(err, &refused), errors.Is(err, driver.ErrDenied):
			return err
		case refused.Code >= 500 || refused.Reason == "" || refused.Kind == "namespaces":
			return err
		case refused.Code == http.StatusTooManyRequests:
			return err
		}
	}
	return nil
}
