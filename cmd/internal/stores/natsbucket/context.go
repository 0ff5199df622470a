package natsbucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"golang.org/x/net/proxy"
)

// natsContext is a file of the nats command that says how to connect. It is read here, because the
// nats command's own package would add a NATS server to this program.
type natsContext struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	NSC         string `json:"nsc"`
	SOCKSProxy  string `json:"socks_proxy"`
	InboxPrefix string `json:"inbox_prefix"`
	TLSFirst    bool   `json:"tls_first"`
	Domain      string `json:"jetstream_domain"`
	APIPrefix   string `json:"jetstream_api_prefix"`
	CertStore   string `json:"windows_cert_store"`
}

// contextDir returns the directory in which the nats command keeps its contexts.
func contextDir() (string, error) {
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "nats", "context"), nil
}

// Contexts returns the names of the contexts of the nats command.
func Contexts() []string {
	dir, err := contextDir()
	if err != nil {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json")) // sorted
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	return names
}

func readContext(name string) (*natsContext, error) {
	dir, err := contextDir()
	if err != nil {
		return nil, err
	}
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("invalid context name %s", fault.Quote(name))
	}
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("unknown context %s", fault.Quote(name))
	}
	c := &natsContext{}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err == nil && c.NSC != "" {
		err = c.ask()
	}
	if c.URL == "" {
		c.URL = nats.DefaultURL
	}
	c.takeLogin()
	return c, err
}

// takeLogin moves the login of the URL, which has precedence, to the fields. A URL stays what it is
// if its servers have different logins, or if there is no user: a field without one is no login.
func (c *natsContext) takeLogin() {
	var login *url.Userinfo
	var bare []string
	for server := range strings.SplitSeq(c.URL, ",") {
		u, err := url.Parse(server)
		if err != nil || u.User == nil || u.User.Username() == "" || login != nil && *login != *u.User {
			return
		}
		login, u.User = u.User, nil
		bare = append(bare, u.String())
	}
	c.URL = strings.Join(bare, ",")
	c.User, c.Token = login.Username(), ""
	password, ok := login.Password()
	if c.Password = password; !ok {
		c.User, c.Token = "", login.Username()
	}
}

// asks reports whether a command knows the credentials.
func (c *natsContext) asks() bool { return c.NSC != "" || strings.HasPrefix(c.Creds, passwordManager) }

// passwordManager begins the name of credentials in 1Password.
const passwordManager = "op://"

// commandWithin bounds a command that knows credentials: it may wait for somebody who unlocks it,
// while the client waits with all its calls.
const commandWithin = 10 * time.Second

func output(within time.Duration, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // for a child that keeps the output open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s does not answer within %v", name, within)
	}
	return out, err
}

// ask runs the nsc command for the settings that the context leaves to it.
func (c *natsContext) ask() error {
	out, err := output(commandWithin, "nsc", "generate", "profile", c.NSC)
	if err != nil {
		return fmt.Errorf("nsc generate profile %s: %w", c.NSC, err)
	}
	var profile struct {
		Creds    string `json:"user_creds"`
		Operator struct {
			Service []string `json:"service"`
		} `json:"operator"`
	}
	if err := json.Unmarshal(out, &profile); err != nil {
		return fmt.Errorf("nsc generate profile %s: %w", c.NSC, err)
	}
	if c.Creds == "" {
		c.Creds = profile.Creds
	}
	if c.URL == "" {
		c.URL = strings.Join(profile.Operator.Service, ",")
	}
	return nil
}

// options returns those of the client.
func (c *natsContext) options() ([]nats.Option, error) {
	all, err := c.login()
	if err != nil {
		return nil, err
	}
	add := func(wanted bool, o func() nats.Option) {
		if wanted {
			all = append(all, o())
		}
	}
	add(c.Token != "", func() nats.Option { return nats.Token(c.Token) })
	add(c.SOCKSProxy != "", func() nats.Option { return nats.SetCustomDialer(socks(c.SOCKSProxy)) })
	add(c.InboxPrefix != "", func() nats.Option { return nats.CustomInboxPrefix(c.InboxPrefix) })
	add(c.TLSFirst, nats.TLSHandshakeFirst)
	if c.CertStore != "" {
		return nil, errors.New("windows_cert_store is not supported; put the certificate into files (cert, key, ca)")
	}
	return c.encrypt(all)
}

// encrypt adds the client's certificate and the authorities.
func (c *natsContext) encrypt(all []nats.Option) ([]nats.Option, error) {
	var cert nats.TLSCertHandler
	var roots nats.RootCAsHandler
	own, ownKey := expand(c.Cert), expand(c.Key)
	if own == "" || ownKey == "" {
		own, ownKey = "", ""
	}
	t, err := kind.TLSOfFiles("", expand(c.CA), own, ownKey)
	switch {
	case err != nil:
		return nil, err
	case own == "" && c.CA == "":
		return all, nil
	}
	if own != "" {
		cert = func() (tls.Certificate, error) { return t.Certificates[0], nil }
	}
	if c.CA != "" {
		roots = func() (*x509.CertPool, error) { return t.RootCAs, nil }
	}
	return append(all, nats.ClientTLSConfig(cert, roots)), nil
}

// login returns the option for the way to log in that has precedence.
func (c *natsContext) login() ([]nats.Option, error) {
	switch {
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}, nil
	case strings.HasPrefix(c.Creds, passwordManager):
		creds, err := output(commandWithin, "op", "read", c.Creds)
		return []nats.Option{nats.UserCredentialBytes(creds)}, err
	case c.Creds != "":
		creds, err := os.ReadFile(expand(c.Creds))
		return []nats.Option{nats.UserCredentialBytes(creds)}, err
	case c.NKey != "":
		return nkey(expand(c.NKey))
	case c.UserJWT != "" && c.UserSeed != "":
		return []nats.Option{nats.UserJWTAndSeed(c.UserJWT, c.UserSeed)}, nil
	case c.UserJWT != "": // a bearer token: nothing is signed
		return []nats.Option{nats.UserJWT(func() (string, error) { return c.UserJWT, nil },
			func([]byte) ([]byte, error) { return nil, nil })}, nil
	}
	return nil, nil
}

// nkey returns the options for a file with a seed. The library would read the file for each
// signature, but the public key only once.
func nkey(file string) ([]nats.Option, error) {
	public, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		return nil, err
	}
	seed, err := os.ReadFile(file)
	signer := new(nats.Options)
	return []nats.Option{public, func(o *nats.Options) error {
		err := nats.UserCredentialBytes(seed)(signer)
		o.SignatureCB = signer.SignatureCB
		return err
	}}, err
}

// expand replaces variables of the environment and a leading ~ in the name of a file.
func expand(path string) string {
	path = os.ExpandEnv(path)
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return home + rest
		}
	}
	return path
}

// socks is the URL of a proxy through which the client connects.
type socks string

// Dial connects through the proxy.
func (s socks) Dial(network, address string) (net.Conn, error) {
	u, err := url.Parse(string(s))
	if err != nil { // left out, since it may quote a password
		return nil, errors.New("socks_proxy of the context is not a valid URL")
	}
	d, err := proxy.FromURL(u, proxy.Direct)
	if err != nil {
		return nil, err
	}
	return d.Dial(network, address)
}
