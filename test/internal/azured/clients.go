package azured

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Mistakes returns clients with a wrong container or wrong credentials, and one without a mistake.
func (s site) Mistakes(t testing.TB) (all []rig.Client) {
	for _, m := range []struct {
		name, container, token, want string
		denied                       bool
	}{
		{name: "no mistake", container: container, token: token(candidate)},
		{name: "missing container", container: "no-such-container", token: token(candidate), want: "no container no-such-container"},
		{name: "missing container, with the remedy", container: "no-such-container", token: token(candidate), want: "az storage container create"},
		{name: "unknown token", container: container, token: token(rig.Secret), want: "SAS token", denied: true},
		{name: "token that has ended", container: container, token: "se=2020-01-01T00:00:00Z&sig=" + rig.Secret, want: "ended at 2020", denied: true},
		{name: "no rights", container: container, token: token(denied), want: "Storage Blob Data", denied: true},
	} {
		c := rig.Client{Name: m.name, Says: rig.Says(m.want), Denied: m.denied, Open: func(t testing.TB) (driver.Store, error) {
			return s.open(t, s.URL(), m.container, m.token), nil
		}}
		if m.want != "" {
			c.Fails = rig.All + " inspect"
		}
		all = append(all, c)
	}
	key := "AccountName=" + azurefake.Account + ";AccountKey=c2VjcmV0;BlobEndpoint=" + s.URL() + "/" + azurefake.Account
	return append(all, []rig.Client{
		{Name: "replaced key", Fails: rig.All + " inspect", Says: rig.Says("key of the account may have been replaced"), Denied: true,
			Open: func(testing.TB) (driver.Store, error) { return azureblob.FromConnectionString(key, container) }},
		{Name: "connection string without a key", Fails: "open", Says: rig.Says("no connection string"), Open: func(testing.TB) (driver.Store, error) {
			return azureblob.FromConnectionString("AccountName="+rig.Secret, container)
		}},
		{Name: "secondary endpoint", Fails: "open", Says: rig.Says("use the primary one"), Open: func(testing.TB) (driver.Store, error) {
			return azureblob.New("https://myaccount-secondary.blob.core.windows.net/elections?sig="+rig.Secret, nil)
		}},
	}...)
}

// Rights returns the users of docs/azure.md, and a candidate without each of its rights. Without
// the right to write, the check of conditions fails, and so does the first write.
func (s site) Rights(testing.TB) (all []rig.Client) {
	for _, user := range []struct{ name, rights, fails, says string }{
		{"candidate", azurefake.Candidate, "", ""},
		{"observer", "r", "insert update rights", "Storage Blob Data Contributor"},
		{"candidate without r", "w", "read", "Storage Blob Data Reader"},
		{"candidate without w", "rcld", "insert update rights", "Storage Blob Data Contributor"},
	} {
		all = append(all, rig.Client{
			Name: user.name, Fails: user.fails, Says: rig.Says(user.says), Denied: true,
			Open: func(t testing.TB) (driver.Store, error) {
				s.Allow(user.name, user.rights)
				return s.open(t, s.URL(), container, token(user.name)), nil
			},
		})
	}
	return all
}

// Rotations replaces the SAS token in the file of credentials.
func (s site) Rotations(t testing.TB) []*rotation.Play {
	file, hand := rotation.File(t, "credentials", token("SECRET"))
	last := ""
	return []*rotation.Play{{
		Name:  "credentials file",
		Args:  []string{"--store", forPrograms.URL(s.Address()) + "&credentials-file=" + file},
		Store: s.open(t, s.URL(), container, token(candidate)),
		Accept: func(secret string) {
			s.Revoke(last)
			last = secret
			s.Allow(secret, azurefake.Candidate)
		},
		Hand:    hand,
		Refusal: "AuthenticationFailed",
	}}
}
