package etcdd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// client is a client of the site that opens with a configuration.
func (s *Site) client(c rig.Client, config clientv3.Config, before func(t testing.TB)) rig.Client {
	c.Open = func(t testing.TB) (driver.Store, error) {
		if before != nil {
			before(t)
		}
		store, err := etcdkv.Open(config, s.Prefix)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { rig.Must(t, store.Close()) })
		return store, nil
	}
	return c
}

// writes names the calls that write, or ask whether they may.
const writes = "insert update rights"

// Mistakes returns clients of this cluster, of one that has lost its quorum, and of one that wants
// certificates.
func (s *Site) Mistakes(t testing.TB) []rig.Client {
	right := Config(s.Addresses()...)
	all := []rig.Client{
		s.client(rig.Client{Name: "no mistake"}, right, nil),
		s.client(rig.Client{Name: "no server", Fails: rig.All + " inspect", Says: rig.Says("connection refused")}, Config("127.0.0.1:9"), nil),
		s.client(rig.Client{Name: "the client wants TLS", Fails: rig.All, Says: rig.Says("authentication handshake failed")},
			secured(s.Addresses(), &tls.Config{MinVersion: tls.VersionTLS12}), nil),
		s.client(rig.Client{Name: "no space", Fails: writes, Says: rig.Says("etcdctl alarm disarm")}, right, s.Full),
		s.client(rig.Client{Name: "learner", Fails: rig.All, Says: rig.Says("etcdctl member promote"), Elsewhere: true}, Config(s.Learner(t)), nil),
		s.client(rig.Client{Name: "no quorum", Fails: rig.All, Says: rig.Says("check that most members run"), Elsewhere: true}, Config(minority(t)), nil),
	}
	return append(all, tlsMistakes(t)...)
}

// Full raises the alarm NOSPACE for the length of a test.
func (s *Site) Full(t testing.TB) { s.Alarm(t, pb.AlarmType_NOSPACE) }

// Alarm raises an alarm for the length of a test.
func (s *Site) Alarm(t testing.TB, kind pb.AlarmType) {
	alarm := func(action pb.AlarmRequest_AlarmAction) {
		wait.Succeeds(t, action.String()+" the alarm", func(ctx context.Context) error {
			operator := Operator(t, s.Cluster)
			status, err := operator.Status(ctx, s.Servers[0].Address())
			if err != nil {
				return err
			}
			_, err = pb.NewMaintenanceClient(operator.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
				Action: action, MemberID: status.Header.MemberId, Alarm: kind,
			})
			return err
		})
	}
	alarm(pb.AlarmRequest_ACTIVATE)
	t.Cleanup(func() { alarm(pb.AlarmRequest_DEACTIVATE) })
}

// Learner adds a member that does not vote, and returns its address.
func (s *Site) Learner(t testing.TB) string {
	t.Helper()
	c := &Cluster{token: s.token}
	one, err := c.add(s.Servers[0].Command[0], "learner", t.TempDir())
	rig.Must(t, err)
	_, err = Operator(t, s.Cluster).MemberAddAsLearner(wait.Context(t), []string{one.peerURL()})
	rig.Must(t, err)
	c.among = s.Servers
	one.Answers = one.listens
	rig.Must(t, one.Start())
	t.Cleanup(c.End)
	return one.Address()
}

// minority returns the address of the one member of three that is left.
func minority(t testing.TB) string {
	t.Helper()
	c, err := Start(wait.Context(t), built, 3, t.TempDir())
	rig.Must(t, err)
	t.Cleanup(c.End)
	rig.Must(t, c.Servers[1].Kill())
	rig.Must(t, c.Servers[2].Kill())
	return c.Servers[0].Address()
}

func secured(addresses []string, c *tls.Config) clientv3.Config {
	var all []string
	for _, a := range addresses {
		all = append(all, "https://"+a)
	}
	config := Config(all...)
	config.TLS = c
	return config
}

// tlsMistakes returns clients of a server that wants certificates.
func tlsMistakes(t testing.TB) []rig.Client {
	ca, certify := certificates.Renewed(t)
	cert, key := certify("", time.Hour)
	c, err := Start(wait.Context(t), built, 1, t.TempDir(), "--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth")
	rig.Must(t, err)
	t.Cleanup(c.End)
	s := &Site{Cluster: c, Prefix: "/tls/"}
	with := func(ca string, pairs ...tls.Certificate) clientv3.Config {
		known := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: pairs}
		if ca != "" {
			text, err := os.ReadFile(ca)
			rig.Must(t, err)
			known.RootCAs = x509.NewCertPool()
			known.RootCAs.AppendCertsFromPEM(text)
		}
		return secured(c.Addresses(), known)
	}
	load := func(cert, key string) tls.Certificate {
		pair, err := tls.LoadX509KeyPair(cert, key)
		rig.Must(t, err)
		return pair
	}
	_, foreign, foreignKey := certificates.New(t)
	pair := load(cert, key)
	owner := OpenAt(t, with(ca, pair), s.Prefix)
	refused := rig.Client{Fails: rig.All, Says: rig.Says("give a certificate"), Denied: true}
	named := func(name string) rig.Client { refused.Name = name; return refused }
	all := []rig.Client{
		s.client(rig.Client{Name: "certificate"}, with(ca, pair), nil),
		s.client(named("no certificate"), with(ca), nil),
		s.client(named("certificate of another authority"), with(ca, load(foreign, foreignKey)), nil),
		s.client(named("no certificate, and the first server is away"), secured(append([]string{"127.0.0.1:9"}, c.Addresses()...), with(ca).TLS), nil),
		s.client(named("expired certificate"), with(ca, load(certify("expired", -time.Minute))), nil),
		s.client(rig.Client{Name: "unknown authority", Fails: rig.All, Says: rig.Says("x509: certificate signed by unknown authority")}, with("", pair), nil),
		s.client(rig.Client{Name: "the server wants TLS", Fails: rig.All, Says: rig.Says("error reading server preface")}, Config(c.Addresses()...), nil),
	}
	for i := range all {
		all[i].Owner = owner
	}
	return all
}

// Rights turns authentication on, and returns users with the roles of docs/etcd.md, and users who
// lack a right.
func (s *Site) Rights(t testing.TB) []rig.Client {
	as := func(name string) clientv3.Config { return s.as(name, rig.Secret) }
	user := s.authenticate(t)
	user("candidate", "candidate", s.Prefix, clientv3.PermissionType(clientv3.PermReadWrite))
	user("observer", "observer", s.Prefix, clientv3.PermissionType(clientv3.PermRead))
	user("writer", "writer", s.Prefix, clientv3.PermissionType(clientv3.PermWrite))
	user("stranger", "stranger", "/elsewhere/", clientv3.PermissionType(clientv3.PermReadWrite))
	all := []rig.Client{
		s.client(rig.Client{Name: "candidate"}, as("candidate"), nil),
		s.client(rig.Client{Name: "observer", Fails: writes, Denied: true, Says: rig.Says("readwrite")}, as("observer"), nil),
		s.client(rig.Client{Name: "write without read", Fails: rig.All, Denied: true, Says: rig.Says("readwrite")}, as("writer"), nil),
		s.client(rig.Client{Name: "another prefix", Fails: rig.All, Denied: true, Says: rig.Says("readwrite")}, as("stranger"), nil),
		s.client(rig.Client{Name: "no user", Fails: rig.All, Denied: true, Says: rig.Says("give a user")}, Config(s.Addresses()...), nil),
		s.client(rig.Client{Name: "wrong password", Fails: "open", Denied: true, Says: rig.Says("user and password")}, s.as("candidate", rig.Secret+"wrong"), nil),
	}
	owner := OpenAt(t, as("root"), s.Prefix)
	for i := range all {
		all[i].Owner = owner
	}
	return all
}

// as is the configuration of a user.
func (s *Site) as(name, password string) clientv3.Config {
	c := Config(s.Addresses()...)
	c.Username, c.Password = name, password
	return c
}

// authenticate turns authentication on, for root alone. The returned function adds a user with a
// role.
func (s *Site) authenticate(t testing.TB) (user func(name, role, on string, kind clientv3.PermissionType)) {
	operator, ctx := Operator(t, s.Cluster), wait.Context(t)
	user = func(name, role, on string, kind clientv3.PermissionType) {
		_, err := operator.UserAdd(ctx, name, rig.Secret)
		rig.Must(t, err)
		if role != "root" {
			_, err = operator.RoleAdd(ctx, role)
			rig.Must(t, err)
			_, err = operator.RoleGrantPermission(ctx, role, on, clientv3.GetPrefixRangeEnd(on), kind)
			rig.Must(t, err)
		}
		_, err = operator.UserGrantRole(ctx, name, role)
		rig.Must(t, err)
	}
	_, err := operator.RoleAdd(ctx, "root")
	rig.Must(t, err)
	user("root", "root", "", 0)
	_, err = operator.AuthEnable(ctx)
	rig.Must(t, err)
	operator, err = clientv3.New(s.as("root", rig.Secret))
	rig.Must(t, err)
	t.Cleanup(func() { _ = operator.Close() })
	return user
}

// Member turns authentication on, and returns the configuration of a user who may lead, and a
// function that replaces the password of the user. This ends each login of the user.
func (s *Site) Member(t testing.TB, name, password string) (config clientv3.Config, replace func(password string)) {
	user := s.authenticate(t)
	user(name, name, s.Prefix, clientv3.PermissionType(clientv3.PermReadWrite))
	root, err := clientv3.New(s.as("root", rig.Secret))
	rig.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	replace = func(password string) {
		_, err := root.UserChangePassword(wait.Context(t), name, password)
		rig.Must(t, err)
	}
	replace(password)
	return s.as(name, password), replace
}

// Rotations replaces the password in a file.
func (s *Site) Rotations(t testing.TB) []*rotation.Play {
	config, replace := s.Member(t, "member", "one")
	file, hand := rotation.File(t, "password", "SECRET\n")
	return []*rotation.Play{{
		Name: "password-file", Args: []string{"--store", "etcd://" + config.Username + "@" + s.Servers[0].Address() + strings.TrimSuffix(s.Prefix, "/") + "?password-file=" + file},
		Store: OpenAt(t, s.as("root", rig.Secret), s.Prefix), Accept: replace, Hand: hand, Refusal: "refuses the user and password",
	}}
}

var _ rig.Clients = (*Site)(nil)
