package redisprefix

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
)

// hints are the remedies for errors of servers, by their code.
var hints = map[string]string{
	"NOPERM":      "docs/redis.md has the rights of a candidate and of an observer",
	"NOAUTH":      "the server wants a password: give USER:PASSWORD@ in the URL, password-file=FILE, or REDISCLI_AUTH",
	"WRONGPASS":   "check user and password: in the URL, in password-file, or in REDISCLI_AUTH",
	"READONLY":    "give the host of the primary, or the Sentinels with sentinel=NAME",
	"MOVED":       "give cluster=true: the server is part of a Cluster; with it, try again: the slot has moved",
	"ASK":         "give cluster=true: the server is part of a Cluster; with it and wait, calls fail while the slot moves",
	"CLUSTERDOWN": "the Cluster misses primaries or slots: see redis-cli CLUSTER INFO",
	"LOADING":     "wait until the server has loaded its data",
	"MASTERDOWN":  "give the host of the primary, or the Sentinels with sentinel=NAME",
	"OOM":         "raise maxmemory, or remove other data",
	"MISCONF":     "free the disk of the server: it cannot save its data, see redis-cli INFO persistence",
	"NOREPLICAS":  "start the replicas that min-replicas-to-write or wait=N demands",
	"BUSY":        "another script blocks the server: redis-cli SCRIPT KILL ends one that only reads",
	"WRONGTYPE":   "another program uses this key: give another prefix=, or remove the key",
}

// passing are the codes of faults that may pass.
var passing = map[string]bool{
	"READONLY": true, "CLUSTERDOWN": true, "LOADING": true, "MASTERDOWN": true, "OOM": true, "MISCONF": true, "NOREPLICAS": true,
	"BUSY": true, "TRYAGAIN": true, "ASK": true,
}

// Explain returns the error and the hint for a server or a prefix that cannot be used.
func (r *Place) Explain(err error) *fault.Error {
	code := redisstore.Code(err)
	server, isServer := errors.AsType[*rueidis.RedisError](err)
	switch {
	case isServer && hints[code] != "":
		f := fault.New(hints[code], "the server refuses: %w", server)
		if errors.Is(err, driver.ErrDenied) {
			f = fault.New(hints[code], "%w: %w", driver.ErrDenied, server)
		}
		f.Passing = passing[code]
		return f
	case isServer && strings.Contains(server.Error(), "DB index"):
		return fault.New("give a database below the setting databases of the server", "there is no database %d: %w", r.Database, server)
	case isServer && strings.Contains(server.Error(), "unknown command") && r.Sentinel != "":
		return fault.New("give the hosts and ports of Sentinels (26379), or leave out sentinel=", "a host is no Sentinel: %w", server)
	case isServer && strings.Contains(server.Error(), "unknown command"):
		return fault.New("elections need Redis 7 or Valkey, with the commands EVAL and EVAL_RO under these names", "scripts do not work: %w", server)
	case errors.Is(err, redisstore.ErrReplicas):
		return fault.Passing("start the replicas, or give the number of all replicas as wait=N", "%w", err)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fault.New("give the authority's file as tls-ca=FILE; the URL's host must be one of the certificate's names",
			"the server's certificate is not accepted: %w", kind.Root(err))
	case errors.As(err, new(tls.RecordHeaderError)):
		return fault.New("give redis:// if the server has no TLS on this port", "the server does not speak TLS: %w", err)
	case errors.Is(err, rueidis.ErrNoAddr), isServer && code == "IDONTKNOW":
		return fault.Passing("check sentinel=NAME, and that the Sentinels know a primary: redis-cli -p 26379 SENTINEL MASTERS",
			"the Sentinels name no primary %s", fault.Quote(r.Sentinel))
	case kind.Away(err):
		return fault.Passing("check host and port in the URL, and that the server runs and accepts connections; rediss:// is for TLS",
			"the server does not answer: %w", kind.Root(err))
	}
	return fault.New("", "%w", err)
}
