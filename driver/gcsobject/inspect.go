package gcsobject

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// Keys returns the sorted keys of all objects under the prefix, by one request for each thousand.
// It needs storage.objects.list. It leaves out objects without content, and names that CheckKey
// refuses. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	var all []string
	query := url.Values{"prefix": {s.prefix}, "fields": {"items(name,size),nextPageToken"}}
	for {
		a, err := s.send(ctx, request{method: http.MethodGet, path: s.bucketPath() + "/o", query: query, most: maxAnswer})
		if err != nil {
			return nil, fmt.Errorf("gcsobject: list the objects of %s: %w", s.place(""), s.explain(listing, err))
		}
		var page struct {
			Items         []struct{ Name, Size string }
			NextPageToken string
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return nil, fmt.Errorf("gcsobject: list the objects of %s: %w", s.place(""), err)
		}
		for _, o := range page.Items {
			key := strings.TrimPrefix(o.Name, s.prefix)
			if o.Size != "0" && s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
		if page.NextPageToken == "" {
			slices.Sort(all)
			return all, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// Inspect lets writers race for an object of its own under the prefix, whose name begins with
// .tenure-probe-, and removes it again. It also checks the lease against the pace of writes, the
// server's clock, and the settings of the bucket as far as storage.buckets.get lets it. It takes
// 150 writes and 20 other requests: about a tenth of a cent at Google's list price.
//
// Errors are as for Read; without the right to write the error also wraps driver.ErrDenied.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	found, err := s.inspect(ctx, lease)
	if err != nil {
		return nil, fmt.Errorf("gcsobject: inspect bucket %s under %q: %w", s.bucket, s.prefix, err)
	}
	return found, nil
}

func (s *Store) inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	found, err := s.cells.Inspect(ctx, object.Inspection{
		Remove: s.remove, Right: "storage.objects.delete", Skew: "Google gives no access token to keys of service accounts then",
		ByHand: func(key string) string { return fmt.Sprintf("gcloud storage rm gs://%s/%s", s.bucket, s.prefix+key) },
	})
	if err != nil {
		return nil, err
	}
	found = append(found, atPace(lease)...)
	return append(found, s.atBucket(ctx, lease)...), context.Cause(ctx)
}

// atPace assumes the default of three renewals in a lease.
func atPace(lease time.Duration) []driver.Finding {
	if lease <= 0 || lease >= 6*Pace {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "lease",
		Problem: fmt.Sprintf("with a lease of %v renewals are %v apart, and Cloud Storage takes about one write a second for each object: "+
			"a release or a second try soon after a renewal may be refused by 429", lease, (lease / 3).Round(time.Millisecond)),
		Remedy: "use a lease of 6s or more",
	}}
}

// settingsOf are those of a bucket that elections depend on.
type settingsOf struct {
	LocationType          string
	DefaultEventBasedHold bool
	Versioning            struct{ Enabled bool }
	RetentionPolicy       struct{ RetentionPeriod string }
	SoftDeletePolicy      struct{ RetentionDurationSeconds string }
}

// atBucket reports nothing without the right to read the settings.
func (s *Store) atBucket(ctx context.Context, lease time.Duration) (found []driver.Finding) {
	fields := "locationType,defaultEventBasedHold,versioning,retentionPolicy,softDeletePolicy"
	a, err := s.send(ctx, request{method: http.MethodGet, path: s.bucketPath(), query: url.Values{"fields": {fields}}, most: maxAnswer})
	var b settingsOf
	if err != nil || json.Unmarshal(a.body, &b) != nil {
		return nil
	}
	find := func(on bool, severity driver.Severity, setting, problem, flag string) {
		if on {
			found = append(found, driver.Finding{
				Severity: severity, Setting: setting, Problem: problem,
				Remedy: "gcloud storage buckets update gs://" + s.bucket + " " + flag,
			})
		}
	}
	const fixed = ": an object cannot be replaced, so no leader can renew its lease"
	renewals := object.Renewals(lease)
	find(b.RetentionPolicy.RetentionPeriod != "", driver.Unsafe, "retention policy", "the bucket has a retention policy"+fixed,
		"--clear-retention-period")
	find(b.DefaultEventBasedHold, driver.Unsafe, "event-based hold", "new objects are on hold"+fixed, "--no-default-event-based-hold")
	find(b.Versioning.Enabled, driver.Advice, "versioning", "each renewal stays as a noncurrent version"+renewals, "--no-versioning")
	soft := b.SoftDeletePolicy.RetentionDurationSeconds
	find(soft != "" && soft != "0", driver.Advice, "soft delete", "each replaced record is kept and billed for "+soft+" s"+renewals,
		"--clear-soft-delete")
	if t := b.LocationType; t == "multi-region" || t == "dual-region" {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: "location",
			Problem: "the bucket is " + t + ": writes are slower and cost more, and if a region fails, the last record may be unreadable for a while",
			Remedy:  "use a bucket in the region of the candidates",
		})
	}
	return found
}

// CheckRights returns an error that wraps driver.ErrDenied if a right to write is missing on the
// bucket. It asks for the permissions, which changes nothing. It does not see rights that are
// granted under a condition on the names of objects, and takes them for missing. A server without
// this request, such as an emulator, cannot tell; its answer counts as yes.
//
// If this store has not yet checked whether its server heeds conditions, CheckRights does that,
// too. So a follower need not do it when it is elected. Then the error wraps driver.ErrUnfit if the
// server ignores one.
//
// CheckRights returns the error of CheckKey, and any other error if there was no answer.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	return s.cells.CheckRights(ctx, key, s.askForRights, s.cells.Require)
}

// needed are the permissions of a candidate.
var needed = []string{"storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"}

func (s *Store) askForRights(ctx context.Context, _ string) error {
	a, err := s.send(ctx, request{
		method: http.MethodGet, path: s.bucketPath() + "/iam/testPermissions", query: url.Values{"permissions": needed}, most: maxAnswer,
	})
	switch refusal := look(err); {
	case refusal.missing():
		return nil
	case err != nil:
		return s.explain(writing, err)
	}
	var granted struct{ Permissions []string }
	if err := json.Unmarshal(a.body, &granted); err != nil {
		return err
	}
	var missing []string
	for _, p := range needed {
		if !slices.Contains(granted.Permissions, p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: a candidate needs %s on bucket %s, as in the role Storage Object User", driver.ErrDenied,
			strings.Join(missing, " and "), s.bucket)
	}
	return nil
}
