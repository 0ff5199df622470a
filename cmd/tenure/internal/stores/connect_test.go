package stores_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stores"
	"github.com/twmb/franz-go/pkg/kfake"
)

// nobody listens there, and nobody is given that port.
const nobody = "127.0.0.1:1"

// freePort is one at which nobody listens.
func freePort(t *testing.T) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr)
}

func parse(t *testing.T, url string) stores.Place {
	t.Helper()
	p, err := stores.Parse("--store", url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// await connects with much patience, has the server started at the first failure, and returns how often it was told of one.
func await(t *testing.T, url string, start func()) int {
	t.Helper()
	told := 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := stores.Connect(ctx, parse(t, url), "key", stores.Options{Create: true}, stores.Patience{
		Limit: stores.Forever, Told: func(err error) {
			if told++; told == 1 {
				start()
			}
			if !fault.Passes(err) {
				t.Errorf("waits out %v", err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return told
}

func TestConnectWaitsForServersThatCannotBeReached(t *testing.T) {
	t.Parallel()
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		at := freePort(t)
		if await(t, "nats://"+at.String()+"/E", func() {
			startServer(t, &server.Options{Host: "127.0.0.1", Port: at.Port, JetStream: true, StoreDir: t.TempDir()})
		}) == 0 {
			t.Error("nothing told")
		}
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		at := freePort(t)
		if await(t, "kafka://"+at.String()+"/t", func() { cluster(t, kfake.Ports(at.Port), kfake.NumBrokers(1)) }) == 0 {
			t.Error("nothing told")
		}
	})
}

func TestConnectReturnsAtOnceWhatWaitingCannotMend(t *testing.T) {
	bareEnvironment(t)
	host := withAccounts(t)
	for _, url := range []string{
		"nats://" + host + "/E",
		"nats://all:wrong@" + host + "/E",
		"nats://mute:s3cret@" + host + "/E",
		"nats://all:s3cret@" + host + "/E",
		"tls://" + host + "/E",
		"s3://bucket?region=r&endpoint=" + refusing(t, 404, "NoSuchBucket"),
		"s3://bucket?region=r&endpoint=" + refusing(t, 403, "AccessDenied"),
		"s3://bucket?region=r&endpoint=" + withTLS(t),
		"kafka://" + cluster(t) + "/t",
		"kafka://all:wrong@" + withUsers(t) + "/t",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), entersWithin)
		var told []error
		_, err := stores.Connect(ctx, parse(t, url), "key", stores.Options{}, stores.Patience{
			Limit: stores.Forever, Told: func(err error) {
				if told = append(told, err); len(told) == 3 { // on a busy machine an attempt may take too long
					cancel()
				}
			},
		})
		if cancel(); err == nil || fault.Passes(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, having waited out %v", stores.Redact(url), err, told)
		}
	}
}

func TestConnectEndsWithItsPatience(t *testing.T) {
	t.Parallel()
	url := "nats://" + nobody + "/E"
	for limit, least := range map[time.Duration]int{0: 0, 2 * time.Second: 2} {
		told, began := 0, time.Now()
		_, err := stores.Connect(t.Context(), parse(t, url), "key", stores.Options{}, stores.Patience{
			Limit: limit, Told: func(error) { told++ },
		})
		if !fault.Passes(err) || told < least || limit == 0 && told > 0 || time.Since(began) < limit {
			t.Errorf("%v: told %d times, ends after %v with %v", limit, told, time.Since(began), err)
		}
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := stores.Connect(ctx, parse(t, "nats://"+nobody+"/E"), "key", stores.Options{}, stores.Patience{
		Limit: stores.Forever, Told: func(error) { cancel(why) },
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
