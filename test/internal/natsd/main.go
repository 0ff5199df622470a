package natsd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/test/internal/process"
)

const (
	// variable is the environment variable that makes a process a server.
	variable = "TENURE_TEST_NATSD"
	anyPort  = server.RANDOM_PORT
)

// Nobody is the name and the password of a user that may only read the state of streams.
const Nobody = "nobody"

// Main runs the server if Start started this process, and does not return then. In any other
// process it returns at once. Call it first.
func Main() {
	encoded := os.Getenv(variable)
	if encoded == "" {
		return
	}
	if err := serve(encoded); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs the server until Stop asks it to shut down.
func serve(encoded string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	var p place
	if err := json.Unmarshal([]byte(encoded), &p); err != nil {
		return err
	}
	s, err := server.NewServer(options(p))
	if err != nil {
		return err
	}
	s.SetLogger(speaker{}, false, false)
	s.Start()
	if !s.ReadyForConnections(process.Patience) {
		return errors.New("not ready for connections")
	}
	ready := said{URL: s.ClientURL(), Monitor: "http://" + s.MonitorAddr().String()}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	<-stop
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// nowhere is the address that hidden servers announce to each other. Nothing listens there, so the
// servers connect only by the given routes.
const nowhere = "127.0.0.1:9"

func options(p place) *server.Options {
	const host = "127.0.0.1"
	o := &server.Options{
		Host: host, Port: p.Port, HTTPHost: host, HTTPPort: anyPort,
		JetStream: true, StoreDir: p.Dir, NoSigs: true,
		NoAuthUser: "all",
		Users: []*server.User{
			{Username: "all", Password: "all"},
			{Username: Nobody, Password: Nobody, Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		},
	}
	if p.Name != "" {
		o.ServerName, o.Routes = p.Name, server.RoutesFromStr(strings.Join(p.Routes, ","))
		o.Cluster = server.ClusterOpts{Name: "test", Host: host, Port: p.Inner, NoAdvertise: true}
		if p.Hidden {
			o.Cluster.Advertise = nowhere
		}
	}
	return o
}

// speaker is the logger of a server. A server goes on after a fatal error unless its logger exits.
type speaker struct{}

// Fatalf gives the reason.
func (speaker) Fatalf(format string, v ...any) {
	fmt.Fprintf(os.Stderr, "natsd: "+format+"\n", v...)
	os.Exit(1)
}

func (speaker) Noticef(string, ...any) {}
func (speaker) Warnf(string, ...any)   {}
func (speaker) Errorf(string, ...any)  {}
func (speaker) Debugf(string, ...any)  {}
func (speaker) Tracef(string, ...any)  {}
