package clientprops

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/driver/reread"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

var errOtherWay = errors.New("the properties have another security.protocol, sasl.mechanism or " +
	"ssl.endpoint.identification.algorithm now; start this process again to use it")

// identity is what a connection shows to a broker, and the authorities that it trusts.
type identity struct {
	mechanism string // empty: no login
	login     login
	tls       *tls.Config // nil: no TLS
}

// sameWay reports whether another identity connects and logs in in the same way.
func (i identity) sameWay(as identity) bool {
	if i.tls != nil && as.tls != nil && i.tls.InsecureSkipVerify != as.tls.InsecureSkipVerify {
		return false
	}
	return i.mechanism == as.mechanism && (i.tls == nil) == (as.tls == nil)
}

// live gives each connection the identity that the properties have then.
type live struct{ source *reread.Source[identity] }

func newLive(first identity, read func() (map[string]string, error), report func(error)) live {
	return live{reread.New(first, func(context.Context) (identity, error) {
		properties, err := read()
		if err != nil {
			return identity{}, err
		}
		now, _, err := parse(properties)
		if err == nil && !now.sameWay(first) {
			err = errOtherWay
		}
		return now, err
	}, report)}
}

func (l live) options(first identity) []kgo.Opt {
	var opts []kgo.Opt
	if first.mechanism != "" {
		opts = append(opts, kgo.SASL(l.logIn(first.mechanism)))
	}
	if first.tls != nil {
		d := &dialer{live: l}
		opts = append(opts, kgo.Dialer(d.dial), kgo.WithHooks(d))
	}
	return opts
}

func (l live) logIn(mechanism string) sasl.Mechanism {
	if mechanism == "PLAIN" {
		return plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			now := l.source.Get(ctx).login
			return plain.Auth{User: now.user, Pass: now.password}, nil
		})
	}
	auth := func(ctx context.Context) (scram.Auth, error) {
		now := l.source.Get(ctx).login
		return scram.Auth{User: now.user, Pass: now.password, IsToken: now.token}, nil
	}
	if mechanism == "SCRAM-SHA-256" {
		return scram.Sha256(auth)
	}
	return scram.Sha512(auth)
}

// dialer makes connections with TLS. It is also a hook, because only the client knows its time
// limit for dialing.
type dialer struct {
	live
	timeout atomic.Int64
}

// OnNewClient is called by the library.
func (d *dialer) OnNewClient(c *kgo.Client) {
	if limit, ok := c.OptValue(kgo.DialTimeout).(time.Duration); ok {
		d.timeout.Store(int64(limit))
	}
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	c := d.source.Get(ctx).tls.Clone()
	c.ServerName = host
	plain := &net.Dialer{Timeout: time.Duration(d.timeout.Load())}
	return (&tls.Dialer{NetDialer: plain, Config: c}).DialContext(ctx, network, address)
}
