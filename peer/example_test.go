package peer_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/peer"
)

// All members of an election have the same configuration. Each is a follower, and becomes the
// leader once it is elected.
func Example() {
	objects := memory.NewPolled() // in production: s3object.New(client, "bucket")
	store, err := peer.New(objects, peer.Config{
		// The networks of the members, such as 10.0.0.0/8.
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		OnError: func(key string, err error) {
			fmt.Println("connection to the leader of", key, err)
		},
	})
	if err != nil {
		panic(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error, 1)
	go func() { served <- store.Serve(l) }()

	e, err := tenure.New(store, "billing", tenure.Config{
		ID:      "node-1",
		Address: l.Addr().String(), // where the other members reach this listener
	})
	if err != nil {
		panic(err)
	}
	err = e.Run(context.Background(), func(context.Context, *tenure.Term) error {
		resp, err := http.Get("http://" + l.Addr().String() + peer.DefaultPath + "?election=billing")
		if err != nil {
			return err
		}
		fmt.Println("while it leads:", resp.Status)
		return resp.Body.Close()
	})
	if err != nil {
		panic(err)
	}
	_ = store.Close() // after Run, so that the followers receive the release
	fmt.Println("server:", <-served)
	// Output:
	// while it leads: 200 OK
	// server: <nil>
}

// With certificates of your own authority, only members can connect, and no other process can read
// what they send. Each connection reads the files again, since certificates expire.
func ExampleLoadTLS() {
	_, err := peer.New(memory.NewPolled(), peer.Config{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		TLS: func() (server, client *tls.Config, err error) {
			return peer.LoadTLS("/etc/tenure/ca.crt", "/etc/tenure/node.crt", "/etc/tenure/node.key")
		},
	})
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("certificates are missing")
	}
	// Output: certificates are missing
}

// A program that already has a server mounts the handler there, on the path that followers request.
func ExampleStore_Handler() {
	store, err := peer.New(memory.NewPolled(), peer.Config{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle(peer.DefaultPath, store.Handler())
	fmt.Println(store.Close())
	// Output: <nil>
}
