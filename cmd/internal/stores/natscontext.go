package stores

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
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
		return nil, fmt.Errorf("invalid context name %q", name)
	}
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("unknown context %q", name)
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
	return c, err
}

// ask runs the nsc command for the settings that the context leaves to it.
func (c *natsContext) ask() error {
	out, err := exec.Command("nsc", "generate", "profile", c.NSC).Output()
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
	add(c.Cert != "" && c.Key != "", func() nats.Option { return nats.ClientCert(expand(c.Cert), expand(c.Key)) })
	add(c.CA != "", func() nats.Option { return nats.RootCAs(expand(c.CA)) })
	add(c.SOCKSProxy != "", func() nats.Option { return nats.SetCustomDialer(socks(c.SOCKSProxy)) })
	add(c.InboxPrefix != "", func() nats.Option { return nats.CustomInboxPrefix(c.InboxPrefix) })
	add(c.TLSFirst, nats.TLSHandshakeFirst)
	if c.CertStore != "" {
		return nil, errors.New("windows_cert_store is not supported; put the certificate into files (cert, key, ca)")
	}
	return all, nil
}

// login returns the option for the way to log in that has precedence.
func (c *natsContext) login() ([]nats.Option, error) {
	switch {
	case c.User != "":
		return []nats.Option{nats.UserInfo(c.User, c.Password)}, nil
	case strings.HasPrefix(c.Creds, "op://"): // of a password manager
		creds, err := exec.Command("op", "read", c.Creds).Output()
		return []nats.Option{nats.UserCredentialBytes(creds)}, err
	case c.Creds != "":
		return []nats.Option{nats.UserCredentials(expand(c.Creds))}, nil
	case c.NKey != "":
		o, err := nats.NkeyOptionFromSeed(expand(c.NKey))
		return []nats.Option{o}, err
	case c.UserJWT != "" && c.UserSeed != "":
		return []nats.Option{nats.UserJWTAndSeed(c.UserJWT, c.UserSeed)}, nil
	case c.UserJWT != "": // a bearer token: nothing is signed
		return []nats.Option{nats.UserJWT(func() (string, error) { return c.UserJWT, nil },
			func([]byte) ([]byte, error) { return nil, nil })}, nil
	}
	return nil, nil
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
	if err != nil {
		return nil, err
	}
	d, err := proxy.FromURL(u, proxy.Direct)
	if err != nil {
		return nil, err
	}
	return d.Dial(network, address)
}
