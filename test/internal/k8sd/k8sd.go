// Package k8sd runs API servers of Kubernetes as processes: the command fake, and the command
// apiserver, which is the library k8s.io/apiserver over etcd. The fake knows Leases alone, and
// apiserver Pods too. Both read their users and rights from files. Tests can stop, kill and pause
// them, start them again on their files, and put back a copy of these.
package k8sd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/tools"
)

const (
	// Namespace is where elections are held, unless a test makes another one.
	Namespace = "elections"
	// Admin is the token of a user with all rights.
	Admin = "admin"
)

// Program is a program of an API server.
type Program string

// The programs.
const (
	Fake      Program = "fake"
	APIServer Program = "apiserver"
)

// made are the files of this process: the paths of its programs, and kubeconfigs.
type made struct {
	mu   sync.Mutex
	dir  string // of kubeconfigs; empty if there are none
	uses int    // servers whose clients may read kubeconfigs
	path map[Program]string
}

var shared = made{path: map[Program]string{}}

// use notes one more server.
func (m *made) use() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.uses++
}

// disuse removes the kubeconfigs with the last server: several may run side by side.
func (m *made) disuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uses--; m.uses == 0 {
		_ = os.RemoveAll(m.dir)
		m.dir = ""
	}
}

// build builds a program once, below the user's cache, where each clone has a place of its own. The
// module of apiserver is not in go.work, because other modules would then get its requirements.
func (m *made) build(p Program) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if path := m.path[p]; path != "" {
		return path, nil
	}
	listed, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/tenure-go/tenure/test/internal/k8sd").Output()
	if err != nil {
		return "", fmt.Errorf("find the source of the API server: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(listed)), string(p))
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "tenure", "k8sd", strings.ReplaceAll(strings.Trim(source, "/"), "/", "-"))
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = source
	if p == APIServer {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	if err := tools.Run(cmd); err != nil {
		return "", err
	}
	m.path[p] = path
	return path, nil
}

// kubeconfig returns a file with the administrator's access to a server.
func (m *made) kubeconfig(address string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir == "" {
		dir, err := os.MkdirTemp("", "k8sd-")
		if err != nil {
			return "", err
		}
		m.dir = dir
	}
	path := filepath.Join(m.dir, strings.ReplaceAll(address, ":", "-")+".yaml")
	if _, err := os.Stat(path); err == nil {
		return path, nil // another process may read it now
	}
	return path, os.WriteFile(path, []byte(Kubeconfig("https://"+address, "token: "+Admin)), 0o600)
}

// Kubeconfig returns one with a server and the credentials of a user, who does not verify the
// server.
func Kubeconfig(server, user string) string {
	return `apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}]
users: [{name: test, user: {` + user + `}}]
`
}

// Server is an API server.
type Server struct {
	*process.Process
	dir  string
	port int

	mu         sync.Mutex
	namespaces []string
	tokens     map[string]string
	roles      map[string]grant
}

// grant binds a Role to a user.
type grant struct {
	Namespace string `json:"namespace"`
	Rules     []Rule `json:"rules"`
}

// Rule is one of a Role.
type Rule struct {
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	Verbs         []string `json:"verbs"`
	ResourceNames []string `json:"resourceNames,omitempty"`
}

// Start starts a server with its files in a directory.
func (p Program) Start(dir string) (*Server, error) {
	path, err := shared.build(p)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	free, err := ports.Free(3)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, port: free[0], tokens: map[string]string{Admin: Admin}, roles: map[string]grant{}}
	s.Process = &process.Process{
		Name: "the API server", Log: filepath.Join(dir, "log"), Answers: s.answers,
		Command: []string{
			path, "-dir", dir, "-port", strconv.Itoa(free[0]), "-etcd-port", strconv.Itoa(free[1]), "-peer-port", strconv.Itoa(free[2]),
		},
	}
	err = errors.Join(s.save("tokens.json", s.tokens), s.AddNamespace(Namespace), s.Process.Start())
	if err != nil {
		s.End()
		return nil, err
	}
	return s, nil
}

// answers reports whether the server has said that it is ready since its last start.
func (s *Server) answers(context.Context) error {
	config := s.Config(Admin)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	answer, err := client.Get(config.Host + leases(Namespace))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	return nil
}

func leases(namespace string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases"
}

// End kills the server.
func (s *Server) End() { _ = s.Process.Kill() }

// Address returns HOST:PORT.
func (s *Server) Address() string { return ports.Address(s.port) }

// Config returns the configuration of a client with a token.
func (s *Server) Config(token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + s.Address(), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.certificate()},
	}
}

func (s *Server) certificate() string { return filepath.Join(s.dir, "server.crt") }

// AddNamespace makes a namespace.
func (s *Server) AddNamespace(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = append(s.namespaces, name)
	return s.save("namespaces.json", s.namespaces)
}

// Bind gives a user rights, and a token of the same name.
func (s *Server) Bind(user, namespace string, rules ...Rule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[user], s.roles[user] = user, grant{namespace, rules}
	return errors.Join(s.save("tokens.json", s.tokens), s.save("roles.json", s.roles))
}

// Accept makes a token the only one of a user.
func (s *Server) Accept(user, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, of := range s.tokens {
		if of == user {
			delete(s.tokens, other)
		}
	}
	s.tokens[token] = user
	return s.save("tokens.json", s.tokens)
}

// trust makes the server accept the client certificates of an authority.
func (s *Server) trust(authority string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "client-ca.crt"), text, 0o600)
}

// save replaces a file as a whole, since the server may read it at any time.
func (s *Server) save(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	fresh := filepath.Join(s.dir, name+".new")
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(s.dir, name))
}

// Backup copies the files of the store. The returned function puts the copy back.
func (s *Server) Backup() (restore func() error, err error) {
	data := filepath.Join(s.dir, "etcd")
	kept, err := os.MkdirTemp(s.dir, "backup-")
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(kept, "etcd")
	if err := errors.Join(s.Stop(), os.CopyFS(copied, os.DirFS(data)), s.Process.Start()); err != nil {
		return nil, err
	}
	return func() error {
		return errors.Join(s.Stop(), os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied)), s.Process.Start())
	}, nil
}
