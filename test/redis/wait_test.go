//go:build integration

package redis

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// TestWaitOfAnotherEraCountsNothing: the network delays WAIT, behind the script, until the server
// was demoted and promoted again. The offset of the script means nothing then.
func TestWaitOfAnotherEraCountsNothing(t *testing.T) {
	a, b := redisd.Start(t, redisd.Redis), redisd.Start(t, redisd.Redis)
	command := func(s *redisd.Server, text string) {
		_, err := s.Do(wait.Context(t), strings.Fields(text)...)
		rig.Must(t, err)
	}
	follow := func(x, y *redisd.Server) {
		command(x, "REPLICAOF "+strings.ReplaceAll(y.Address(), ":", " "))
		x.Until(t, "replication", "master_link_status:up")
	}
	rb := redisd.Start(t, redisd.Redis)
	follow(rb, b)
	for range 20 {
		command(b, "SET some "+strings.Repeat("x", 1000))
	}
	ra := redisd.Start(t, redisd.Redis)
	follow(ra, a)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	defer l.Close()
	reached, release := make(chan bool), make(chan bool)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", a.Address())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(in, out) }()
			go func() {
				buf := make([]byte, 1<<16)
				for {
					n, err := in.Read(buf)
					if err != nil {
						return
					}
					at := strings.Index(string(buf[:n]), "*3\r\n$4\r\nWAIT")
					if at < 0 {
						_, _ = out.Write(buf[:n])
						continue
					}
					_, _ = out.Write(buf[:at])
					reached <- true
					<-release
					_, _ = out.Write(buf[at:n])
				}
			}()
		}
	}()
	s, err := redisstore.Open(wait.Context(t), rueidis.ClientOption{InitAddress: []string{l.Addr().String()}}, redisstore.WithWait(1))
	rig.Must(t, err)
	defer s.Close()
	go func() {
		<-reached
		time.Sleep(100 * time.Millisecond)
		rig.Must(t, ra.Kill())
		follow(a, b)
		command(a, "REPLICAOF NO ONE")
		rig.Must(t, rb.Kill())
		follow(b, a)
		release <- true
	}()
	v, err := s.CompareAndSwap(wait.Context(t), "k", "", []byte("claim"))
	if !errors.Is(err, redisstore.ErrReplicas) {
		t.Errorf("a lost write: got version %q, %v; want an unknown outcome", v, err)
	}
}
