package gcsd

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Mistakes returns clients with a wrong bucket, endpoint or token, and one without a mistake.
func (s site) Mistakes(t testing.TB) (all []rig.Client) {
	for _, m := range []struct {
		name, url, bucket, token, want string
		denied                         bool
	}{
		{name: "no mistake", bucket: bucket, token: candidate},
		{name: "missing bucket", bucket: "no-such-bucket", token: candidate, want: "no bucket no-such-bucket"},
		{name: "missing bucket, with the remedy", bucket: "no-such-bucket", token: candidate, want: "gcloud storage buckets create"},
		{name: "unknown token", bucket: bucket, token: rig.Secret, want: "credentials", denied: true},
		{name: "no token", bucket: bucket, want: "credentials", denied: true},
		{name: "no rights", bucket: bucket, token: denied, want: "storage.objects.", denied: true},
	} {
		c := rig.Client{Name: m.name, Says: rig.Says(m.want), Denied: m.denied, Open: func(t testing.TB) (driver.Store, error) {
			return newStore(t, s.URL(), m.bucket, m.token), nil
		}}
		if m.want != "" {
			c.Fails = rig.All + " inspect"
		}
		all = append(all, c)
	}
	return all
}

// Rights returns the users of docs/gcs.md, and a candidate without each of its permissions. Without
// the right to replace objects, the check of conditions fails, and so does the first write.
func (s site) Rights(testing.TB) (all []rig.Client) {
	user := func(name string, fails, says string, permissions ...string) {
		all = append(all, rig.Client{
			Name: name, Fails: fails, Says: rig.Says(says), Denied: true,
			Open: func(t testing.TB) (driver.Store, error) {
				s.Allow(name, permissions...)
				return newStore(t, s.URL(), bucket, name), nil
			},
		})
	}
	user("candidate", "", "", gcsfake.All...)
	user("observer", "insert update rights", "storage.objects.create", "storage.objects.get", "storage.objects.list")
	for lacks, fails := range map[string]string{
		"get": "read rights", "list": "rights", "create": "insert update rights", "delete": "insert update rights",
	} {
		without := func(p string) bool { return strings.HasSuffix(p, "."+lacks) }
		user("candidate without "+lacks, fails, "storage.objects."+lacks, slices.DeleteFunc(slices.Clone(gcsfake.All), without)...)
	}
	return all
}

// Rotations returns none: access tokens last an hour, and the tests of package gcsobject replace
// them in virtual time.
func (s site) Rotations(testing.TB) []*rotation.Play { return nil }
