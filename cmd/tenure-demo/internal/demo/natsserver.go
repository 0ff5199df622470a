package demo

import (
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// natsServer runs a NATS server with JetStream in this process: on loopback, on a free port, with
// temporary files.
type natsServer struct {
	server *server.Server
	dir    string
}

func serveNATS() (*natsServer, error) {
	dir, err := os.MkdirTemp("", "tenure-demo-")
	if err != nil {
		return nil, fault.New("set TMPDIR to a directory that can be written to",
			"the demo's server has no place for its files: %w", err)
	}
	e := &natsServer{dir: dir}
	if err := e.start(); err != nil {
		e.close()
		return nil, fault.New("give a running one with --store", "the demo's server does not start: %w", err)
	}
	return e, nil
}

func (e *natsServer) start() error {
	s, err := server.NewServer(&server.Options{
		ServerName: "tenure-demo",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   e.dir,
		NoLog:      true,
		NoSigs:     true,
	})
	if err != nil {
		return err
	}
	e.server = s
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("not ready after 10 s")
	}
	return nil
}

func (e *natsServer) place() stores.Place { return natsPlace(e.server.ClientURL()) }

func natsPlace(url string) stores.Place {
	return stores.Place{Setting: theServer, NATS: &stores.NATS{Servers: []string{url}, Bucket: Bucket, Pristine: true}}
}

func (e *natsServer) close() {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	_ = os.RemoveAll(e.dir)
}
