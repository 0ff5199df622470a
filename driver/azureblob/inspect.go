package azureblob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// Keys returns the sorted keys of all blobs under the prefix, by one request for each 5,000. It
// needs the right to list. It leaves out blobs without content, and names that CheckKey refuses.
// Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	var all []string
	c := s.clients(ctx)
	pages := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &s.prefix})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("azureblob: list the blobs of %s: %w", s.place(""), s.explain(listing, c.secret, plain(err)))
		}
		if page.Segment == nil {
			continue
		}
		for _, b := range page.Segment.BlobItems {
			if b.Name == nil || b.Properties == nil || b.Properties.ContentLength == nil || *b.Properties.ContentLength == 0 {
				continue
			}
			if key := strings.TrimPrefix(*b.Name, s.prefix); s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// Inspect lets writers race for a blob of its own under the prefix, whose name begins with
// .tenure-probe-, and removes it again. It also checks the server's clock, the end of a SAS token,
// and the redundancy of the account and the settings of the container as far as the credentials
// reach. It makes 150 writes and 20 other requests: about a tenth of a cent at Azure's
// list price.
//
// Errors are as for Read; without the right to write the error also wraps driver.ErrDenied.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	found, err := s.inspect(ctx, lease)
	if err != nil {
		return nil, fmt.Errorf("azureblob: inspect %s: %w", s.place(""), err)
	}
	return found, nil
}

func (s *Store) inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	found, err := s.cells.Inspect(ctx, object.Inspection{
		Remove: s.remove, Right: "delete", Skew: "at 15 min Azure refuses the signatures of keys, and SAS tokens begin or end early",
		ByHand: func(key string) string {
			return fmt.Sprintf("az storage blob delete --account-name %s --container-name %s --name '%s'", s.account, s.container, s.prefix+key)
		},
	})
	if err != nil {
		return nil, err
	}
	found = append(found, s.atToken(ctx, time.Now())...)
	found = append(found, s.atAccount(ctx)...)
	return append(found, s.atContainer(ctx, lease)...), context.Cause(ctx)
}

// atToken reports a SAS token that ends within a week.
func (s *Store) atToken(ctx context.Context, now time.Time) []driver.Finding {
	at := ends(s.clients(ctx).secret.sas)
	if at.IsZero() || at.Sub(now) > 7*24*time.Hour {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "SAS token",
		Problem: fmt.Sprintf("the token ends at %s: then no leader can renew its lease", at.Format(time.RFC3339)),
		Remedy:  "put another one into the file of credentials before that, or use a managed identity",
	}}
}

// atAccount reports geo-redundancy, and nothing if the credentials do not reach the account.
func (s *Store) atAccount(ctx context.Context) []driver.Finding {
	info, err := s.clients(ctx).GetAccountInfo(ctx, nil)
	if err != nil || info.SKUName == nil || !strings.HasSuffix(string(*info.SKUName), "GRS") && !strings.HasSuffix(string(*info.SKUName), "GZRS") {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "redundancy",
		Problem: fmt.Sprintf("the account has %s: an unplanned failover to the other region loses the last acknowledged writes, and two "+
			"candidates can lead if one still trusts its lease then", *info.SKUName),
		Remedy: fmt.Sprintf("stop all candidates for one lease during a failover, or hold elections in an account without geo-redundancy: "+
			"az storage account update --name %s --sku Standard_ZRS", s.account),
	}}
}

// atContainer reports the settings of the container that the credentials reach.
func (s *Store) atContainer(ctx context.Context, lease time.Duration) (found []driver.Finding) {
	find := func(on bool, severity driver.Severity, setting, problem, remedy string) {
		if on {
			found = append(found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
		}
	}
	renewals := object.Renewals(lease)
	const update = "az storage account blob-service-properties update --account-name "
	find(s.versioned.Load(), driver.Advice, "versioning", "each renewal stays as a version of the blob"+renewals, update+s.account+" --enable-versioning false")
	if days := s.softDelete(ctx); days > 0 {
		find(true, driver.Advice, "soft delete", fmt.Sprintf("each replaced record is kept and billed for %d days%s", days, renewals),
			update+s.account+" --enable-delete-retention false")
	}
	p, err := s.clients(ctx).GetProperties(ctx, nil)
	if err != nil {
		return found
	}
	const fixed = ": a blob cannot be replaced, so no leader can renew its lease"
	versions := is(p.IsImmutableStorageWithVersioningEnabled)
	find(is(p.HasImmutabilityPolicy) && !versions, driver.Unsafe, "immutability policy", "the container has an immutability policy"+fixed,
		"hold elections in another container")
	find(is(p.HasLegalHold), driver.Unsafe, "legal hold", "the container has a legal hold"+fixed, "hold elections in another container")
	find(versions, driver.Advice, "version-level immutability", "each renewal stays as a version that may not be deleted"+renewals,
		"hold elections in another container")
	return found
}

// softDelete returns for how many days the account keeps replaced blobs; 0 also if the credentials
// do not tell.
func (s *Store) softDelete(ctx context.Context) int32 {
	set, err := s.clients(ctx).account.GetProperties(ctx, nil)
	if err != nil || set.DeleteRetentionPolicy == nil || !is(set.DeleteRetentionPolicy.Enabled) || set.DeleteRetentionPolicy.Days == nil {
		return 0
	}
	return *set.DeleteRetentionPolicy.Days
}

func is(b *bool) bool { return b != nil && *b }

// CheckRights returns an error that wraps driver.ErrDenied if the right to write blobs is missing.
// It sends a write to the blob of the check of conditions, under a condition that this blob never
// meets. It does not see rights that are granted for single blobs, and takes them for missing.
//
// If this store has not yet checked whether its server heeds conditions, CheckRights does that. So
// a follower need not do it when it is elected. The error wraps driver.ErrUnfit if the server
// ignores one, and the writes that follow check again.
//
// CheckRights returns the error of CheckKey, and any other error if there was no answer.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	return s.cells.CheckRights(ctx, key, s.cells.Require, s.cells.Violate)
}
