// Command apiserver is the part of a Kubernetes API server that elections and their hooks use: the
// library k8s.io/apiserver with the types Lease and Pod over an etcd in the same process. So
// resource versions, conflicts, watches and errors are those of Kubernetes. It is a module of its
// own, because it requires many others.
//
// Users and rights are in files of its directory, which it reads for each request: see access.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	var p place
	flag.StringVar(&p.dir, "dir", "", "the `directory` of the data, the certificates and the files of users and rights")
	flag.IntVar(&p.port, "port", 0, "the `port` of the API")
	flag.IntVar(&p.etcdPort, "etcd-port", 0, "the `port` of etcd; the next one is for its peers")
	flag.IntVar(&p.peerPort, "peer-port", 0, "the `port` for peers of etcd")
	flag.Parse()
	if err := run(p); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

// place has the directory and the ports, which stay the same for each start.
type place struct {
	dir                      string
	port, etcdPort, peerPort int
}

// run serves until a signal asks it to shut down. It prints its address when it is ready.
func run(p place) error {
	if p.dir == "" || p.port == 0 || p.etcdPort == 0 || p.peerPort == 0 {
		return errors.New("-dir and all ports must be given")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := startEtcd(p)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer store.Close()
	server, err := newServer(p)
	if err != nil {
		return err
	}
	prepared := server.PrepareRun()
	failed := make(chan error, 1)
	go func() { failed <- prepared.RunWithContext(ctx) }()
	if err := awaitReady(ctx, p, failed); err != nil {
		return err
	}
	ready := map[string]string{"URL": p.url(), "CA": filepath.Join(p.dir, certificate)}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return <-failed
}
