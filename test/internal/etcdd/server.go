// Package etcdd runs etcd servers for tests, alone or three as a cluster, as processes of their own
// on 127.0.0.1. Tests can stop, kill and pause them, restore snapshots, and start them again on
// their files. To run them by hand: `go run ./test/internal/serve etcd3`.
package etcdd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/tools"
)

// Server is one member of a cluster. Members of one have the same fields but Name and ports.
type Server struct {
	process.Process
	name         string
	client, peer int // ports
	dir          string
	cluster      *Cluster
	proxy        string // the URL at which the others reach it; empty: they reach it directly
}

// Cluster is one server, or three that replicate. Its methods may be called concurrently, except
// those that change the same server. As a rig.Server all fail together.
type Cluster struct {
	Servers []*Server
	// token is that of the cluster: with the addresses of peers it makes the cluster id.
	token string
	extra []string
	// among are the members of an existing cluster that these servers join.
	among []*Server
	// network is between the members; nil: they reach each other directly.
	network *network
}

// Token is the token of a new cluster.
const Token = "tenure"

// Start starts a cluster of n members on a directory, with more arguments for each.
func Start(ctx context.Context, find func(context.Context) (string, error), n int, dir string, extra ...string) (*Cluster, error) {
	return start(ctx, &Cluster{token: Token, extra: extra}, find, n, dir)
}

// startPartible is Start for three members whose ways to each other can be cut.
func startPartible(ctx context.Context, find func(context.Context) (string, error), dir string) (*Cluster, error) {
	return start(ctx, &Cluster{token: Token, network: newNetwork()}, find, 3, dir)
}

func start(ctx context.Context, c *Cluster, find func(context.Context) (string, error), n int, dir string) (*Cluster, error) {
	path, err := find(ctx)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if _, err := c.add(path, fmt.Sprintf("m%d", i+1), dir); err != nil {
			return nil, err
		}
	}
	if err := c.Start(); err != nil {
		c.End()
		return nil, err
	}
	return c, nil
}

// add adds a server that has not started yet.
func (c *Cluster) add(path, name, dir string) (*Server, error) {
	found, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	s := &Server{name: name, client: found[0], peer: found[1], cluster: c, dir: filepath.Join(dir, name)}
	s.Process.Name, s.Command, s.Dir, s.Log = "etcd "+name, []string{path}, dir, filepath.Join(dir, name+".log")
	s.Answers = s.healthy
	if c.network != nil {
		if s.proxy, err = c.network.join(s); err != nil {
			return nil, err
		}
	}
	c.Servers = append(c.Servers, s)
	return s, nil
}

// arguments returns those of a member that starts on its files, or as a new member.
func (s *Server) arguments() []string {
	state := "new"
	if s.cluster.among != nil {
		state = "existing"
	}
	return append([]string{
		"--name", s.name, "--data-dir", s.dir, "--log-level", "error",
		"--listen-client-urls", s.URL(), "--advertise-client-urls", s.URL(),
		"--listen-peer-urls", "http://" + s.listensForPeers(), "--initial-advertise-peer-urls", s.peerURL(),
		"--initial-cluster", s.cluster.initial(), "--initial-cluster-token", s.cluster.token, "--initial-cluster-state", state,
	}, s.cluster.extra...)
}

// secure reports whether clients use TLS.
func (c *Cluster) secure() bool { return slices.Contains(c.extra, "--cert-file") }

// URL returns the address for clients.
func (s *Server) URL() string {
	if s.cluster.secure() {
		return "https://" + s.Address()
	}
	return "http://" + s.Address()
}

// Address is HOST:PORT for clients.
func (s *Server) Address() string { return ports.Address(s.client) }

// listensForPeers is HOST:PORT for the other members.
func (s *Server) listensForPeers() string { return ports.Address(s.peer) }

// peerURL returns the address that the other members know.
func (s *Server) peerURL() string {
	if s.proxy != "" {
		return s.proxy
	}
	return "http://" + s.listensForPeers()
}

func (c *Cluster) initial() string {
	var all []string
	for _, s := range slices.Concat(c.among, c.Servers) {
		all = append(all, s.name+"="+s.peerURL())
	}
	return strings.Join(all, ",")
}

// Begin starts the member, and does not wait for the others.
func (s *Server) Begin() error {
	s.Command = append(s.Command[:1:1], s.arguments()...)
	return s.Process.Begin()
}

// Start starts the member, and waits until the cluster answers through it.
func (s *Server) Start() error {
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	return s.Await(ctx, s.Answers)
}

// healthy returns an error until the member answers a linearizable read.
func (s *Server) healthy(ctx context.Context) error {
	if s.cluster.secure() {
		return s.listens(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct{ Health, Reason string }
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return err
	}
	if said.Health != "true" && !strings.Contains(said.Reason, "NOSPACE") {
		return fmt.Errorf("it is not healthy: %s", said.Reason)
	}
	return nil
}

// listens returns an error until the port of the clients is open.
func (s *Server) listens(ctx context.Context) error {
	conn, err := rig.Connector{}.DialContext(ctx, "tcp", s.Address())
	if err != nil {
		return err
	}
	return conn.Close()
}

// each calls do for all members at the same time, since a member waits for the others.
func (c *Cluster) each(do func(*Server) error) error {
	errs := make(chan error, len(c.Servers))
	for _, s := range c.Servers {
		go func() { errs <- do(s) }()
	}
	var all []error
	for range c.Servers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// Start starts all members, and waits until each answers.
func (c *Cluster) Start() error { return c.each((*Server).Start) }

// Stop shuts all members down.
func (c *Cluster) Stop() error { return c.each((*Server).Stop) }

// Kill kills all members.
func (c *Cluster) Kill() error { return c.each((*Server).Kill) }

// Pause stops all members by SIGSTOP.
func (c *Cluster) Pause() error { return c.each((*Server).Pause) }

// Resume continues all members.
func (c *Cluster) Resume() error { return c.each((*Server).Resume) }

// End kills the members. Their files stay.
func (c *Cluster) End() {
	_ = c.Kill()
	if c.network != nil {
		c.network.close()
	}
}

// Whole waits until each member answers.
func (c *Cluster) Whole() error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	return c.each(func(s *Server) error { return s.Await(ctx, s.Answers) })
}

// Addresses returns HOST:PORT of each member, for clients.
func (c *Cluster) Addresses() (all []string) {
	for _, s := range c.Servers {
		all = append(all, s.Address())
	}
	return all
}

// Wipe stops all members, removes their data, and starts them again with the same arguments. The
// new cluster has the same id.
func (c *Cluster) Wipe() error {
	return c.replace(func(s *Server) error { return os.RemoveAll(s.dir) })
}

// Restore stops all members, and starts them again on the snapshot in a file. Without other
// arguments for etcdutl the token stays, and with it the cluster id.
func (c *Cluster) Restore(ctx context.Context, snapshot, token string, more ...string) error {
	etcdutl, err := program(ctx, "etcdutl")
	if err != nil {
		return err
	}
	return c.replace(func(s *Server) error {
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
		c.token = token
		return tools.Run(exec.CommandContext(ctx, etcdutl, append([]string{
			"snapshot", "restore", snapshot, "--name", s.name, "--data-dir", s.dir, "--initial-cluster", c.initial(),
			"--initial-cluster-token", token, "--initial-advertise-peer-urls", s.peerURL(),
		}, more...)...))
	})
}

// replace replaces the files of all members while they are stopped.
func (c *Cluster) replace(files func(*Server) error) error {
	if err := c.Stop(); err != nil {
		return err
	}
	for _, s := range c.Servers {
		if err := files(s); err != nil {
			return err
		}
	}
	return c.Start()
}

var _ rig.Server = (*Cluster)(nil)
