package redisd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// client is a client with a mistake, or with a right less.
type client struct {
	name, want string
	works      string // the calls that do not fail; open: all fail when the store is opened
	denied     bool
	option     rueidis.ClientOption
	opts       []redisstore.Option
	owner      driver.Store
	// begin and end are commands of the administrator.
	begin, end string
}

// list returns clients; those without an address are of the site's server.
func (s *site) list(clients []client) (all []rig.Client) {
	for _, c := range clients {
		fails := rig.All
		for call := range strings.FieldsSeq(c.works) {
			fails = strings.Replace(fails, call, "", 1)
		}
		if c.works == "open" {
			fails = "open"
		}
		if c.option.InitAddress == nil {
			c.option.InitAddress = s.option.InitAddress
		}
		all = append(all, rig.Client{
			Name: c.name, Owner: c.owner, Fails: fails, Says: rig.Says(c.want), Denied: c.denied, Elsewhere: true,
			Open: func(t testing.TB) (driver.Store, error) {
				if c.begin != "" {
					s.command(t, c.begin)
					t.Cleanup(func() { s.command(t, c.end) })
				}
				store, err := redisstore.Open(wait.Context(t), c.option, c.opts...)
				if err != nil {
					return nil, err
				}
				t.Cleanup(func() { rig.Must(t, store.Close()) })
				return store, nil
			},
		})
	}
	return all
}

// command runs a command of the administrator.
func (s *site) command(t testing.TB, text string) {
	t.Helper()
	_, err := s.servers[0].Do(context.Background(), strings.Fields(text)...)
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%s: %v", text, err)
	}
}

// at returns options for a server and a user.
func at(s *Server, user, password string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{s.Address()}, Username: user, Password: password}
}

// Mistakes returns those of clients of one server.
func (s *site) Mistakes(t testing.TB) []rig.Client {
	own := s.servers[0]
	s.command(t, "ACL SETUSER guest on >"+rig.Secret+" allkeys allchannels +@all")
	for i := range 40 { // the test's keys, under another prefix
		for _, key := range []string{"update", "insert-update"} {
			s.command(t, fmt.Sprintf("RPUSH foreign:%s%d x", key, i))
			s.command(t, fmt.Sprintf("HSET other:%s%d field x", key, i))
		}
	}
	replica := Start(t, Redis, "replicaof "+strings.ReplaceAll(own.Address(), ":", " "))
	replica.Until(t, "replication", "master_link_status:up")
	plain := Start(t, Redis, `rename-command EVAL ""`, `rename-command EVAL_RO ""`)
	locked := Start(t, Redis, "requirepass "+rig.Secret)
	empty, elsewhere := cluster(t)
	number := own.option()
	number.SelectDB = 99
	encrypted := own.option()
	encrypted.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return s.list([]client{
		{name: "no mistake", option: at(own, "guest", rig.Secret), works: rig.All},
		{name: "wrong password", option: at(own, "guest", rig.Secret+"wrong"), want: "check user and password", works: "open", denied: true},
		{name: "no such user", option: at(own, "missing", rig.Secret), want: "check user and password", works: "open", denied: true},
		{name: "no password", option: locked.option(), want: "give a user and a password", works: "open", denied: true},
		{name: "wrong database", option: number, want: "databases", works: "open"},
		{name: "TLS to a server without it", option: encrypted, want: "connect", works: "open"},
		{name: "a replica", option: replica.option(), want: "connect to the primary"},
		{name: "no scripts", option: plain.option(), want: "EVAL"},
		{name: "a Cluster that is down", option: empty.option(), want: "CLUSTER INFO"},
		{name: "a server of a Cluster", option: elsewhere.option(), want: "WithCluster"},
		{name: "a foreign value", opts: []redisstore.Option{redisstore.WithPrefix("foreign:")}, want: "another program", works: "rights"},
		{name: "a foreign hash", opts: []redisstore.Option{redisstore.WithPrefix("other:")}, want: "another program", works: "rights insert update"},
		{
			name: "a full server", want: "maxmemory", works: "read rights",
			begin: "CONFIG SET maxmemory 1", end: "CONFIG SET maxmemory 0",
		},
		{
			name: "too few replicas", want: "min-replicas-to-write", works: "read rights",
			begin: "CONFIG SET min-replicas-to-write 9", end: "CONFIG SET min-replicas-to-write 0",
		},
		{name: "WAIT for too many replicas", opts: []redisstore.Option{redisstore.WithWait(9)}, want: "too few replicas"},
	})
}

func (s *Server) option() rueidis.ClientOption { return at(s, "", "") }

// cluster returns a server of a Cluster without slots, and one of another Cluster where all slots
// are another server's.
func cluster(t testing.TB) (down, elsewhere *Server) {
	t.Helper()
	ctx := wait.Context(t)
	var all []*Server
	for range 3 {
		all = append(all, Start(t, Redis, "cluster-enabled yes"))
	}
	_, err := all[2].Do(ctx, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	rig.Must(t, err)
	rig.Must(t, all[1].Meet(ctx, all[2]))
	wait.Succeeds(t, "the Cluster is whole", func(ctx context.Context) error {
		text, err := all[1].Do(ctx, "CLUSTER", "INFO")
		if err == nil && !hasLine(text, "cluster_state:ok") {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
	return all[0], all[1]
}

// Documented returns the command of docs/redis.md that makes a user.
func Documented(t testing.TB, user string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "redis.md"))
	rig.Must(t, err)
	for line := range strings.Lines(string(page)) {
		if command := strings.TrimSpace(line); strings.HasPrefix(command, "ACL SETUSER "+user+" ") {
			return command
		}
	}
	t.Fatalf("docs/redis.md has no rights of %s", user)
	return ""
}

// Rights returns clients with the documented rights, and without one of them.
func (s *site) Rights(t testing.TB) []rig.Client {
	s.command(t, Documented(t, "candidate"))
	s.command(t, Documented(t, "observer"))
	as := func(user string) rueidis.ClientOption { return at(s.servers[0], user, "s3cret") }
	all := []client{
		{name: "candidate", option: as("candidate"), works: rig.All},
		{name: "observer", option: as("observer"), works: "read", want: "give this user +eval", denied: true},
	}
	all = append(all, client{
		name: "candidate without WAIT", option: as("candidate"), opts: []redisstore.Option{redisstore.WithWait(1)}, want: "give this user +wait", denied: true,
	})
	lack := func(user, right, back, works string) {
		want := map[string]string{"resetkeys": "~ with the keys", "resetchannels": "~ or & for its key or channel"}[right]
		if user == "observer" { // its writes lack eval, too
			want = "NOPERM"
		}
		all = append(all, client{
			name: user + " " + right, option: as(user), works: works, want: cmp.Or(want, "give this user "+back), denied: true,
			begin: "ACL SETUSER " + user + " " + right, end: "ACL SETUSER " + user + " " + back,
		})
	}
	writing := "insert update rights"
	lack("candidate", "-eval", "+eval", "read")
	lack("candidate", "-eval_ro", "+eval_ro", writing)
	for _, command := range []string{"info", "time", "hmget", "exists"} {
		lack("candidate", "-"+command, "+"+command, "")
		lack("observer", "-"+command, "+"+command, "")
	}
	lack("candidate", "-hset", "+hset", "read")
	lack("candidate", "-publish", "+publish", "read")
	lack("candidate", "resetchannels", "&tenure:*", "read")
	lack("candidate", "resetkeys", "~tenure:*", "")
	lack("observer", "-eval_ro", "+eval_ro", "")
	lack("observer", "resetkeys", "%R~tenure:*", "")
	return s.list(all)
}

// Rotations replaces the password of a user, in a file.
func (s *site) Rotations(t testing.TB) []*rotation.Play {
	s.command(t, "ACL SETUSER member on allkeys allchannels +@all")
	file, hand := rotation.File(t, "password", "SECRET\n")
	own, _ := s.Open(t, 0)
	return []*rotation.Play{{
		Name: "password-file", Args: []string{"--store", "redis://member@" + s.servers[0].Address() + "?password-file=" + file},
		Store: own, Hand: hand, Refusal: "WRONGPASS",
		Accept: func(secret string) {
			s.command(t, "ACL SETUSER member resetpass >"+secret)
			s.command(t, "CLIENT KILL USER member")
		},
	}}
}
