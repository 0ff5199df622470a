package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
)

// Code returns the first word of the server's error in err, such as READONLY or MOVED. The client
// library leaves out ERR. It is empty if err holds no error of a server.
func Code(err error) string {
	var e *rueidis.RedisError
	if !errors.As(err, &e) {
		return ""
	}
	code, _, _ := strings.Cut(e.Error(), " ")
	return code
}

// remedies are what an operator does about errors, by their code.
var remedies = map[string]string{
	"NOPERM": "give this user the rights of a candidate or an observer: +eval or +eval_ro, the commands of the script, " +
		"~ with the keys, & with the channel",
	"NOAUTH":    "give a user and a password: the server requires them",
	"WRONGPASS": "check user and password",
	"READONLY":  "connect to the primary, or to Sentinel, which names it",
	"MOVED": "the server is part of a Cluster: open the store with WithCluster; if it is, the slot has moved, and a later call finds it, " +
		"unless this user lacks +asking while a slot moves",
	"ASK":         "the server is part of a Cluster: open the store with WithCluster; if it is, calls with WithWait fail while the slot moves",
	"CLUSTERDOWN": "the Cluster misses primaries or slots: see CLUSTER INFO",
	"LOADING":     "the server still loads its data: wait",
	"MASTERDOWN":  "connect to the primary: this replica has lost it",
	"OOM":         "raise maxmemory, or remove other data: the server takes no writes",
	"MISCONF":     "the server cannot save its data, so it takes no writes: free its disk, see INFO persistence",
	"NOREPLICAS":  "start the replicas that min-replicas-to-write or WithWait demands",
	"BUSY":        "another script blocks the server: SCRIPT KILL ends one that only reads",
	"WRONGTYPE":   "another program uses this key: give elections another prefix, or remove the key",
}

// right returns the right to a command that the server's error in err names, such as +wait. It is
// empty if there is none, as where a right to a key or to a channel is missing.
func right(err error) string {
	_, rest, _ := strings.Cut(err.Error(), " permissions to run the '")
	command, on, found := strings.Cut(rest, "' command")
	switch {
	case found && strings.HasPrefix(on, " on "): // an answer of the script
		return "+" + command + " and ~ or & for its key or channel"
	case found:
		return "+" + command
	}
	return ""
}

// explain adds the remedy of an operator, and the error of package driver.
func explain(err error) error {
	var dial *net.OpError
	switch code := Code(err); {
	case code == "NOPERM" && right(err) != "":
		return fmt.Errorf("%w: %w; give this user %s, and what else a candidate or an observer needs", driver.ErrDenied, err, right(err))
	case code == "NOPERM", code == "NOAUTH", code == "WRONGPASS":
		return fmt.Errorf("%w: %w; %s", driver.ErrDenied, err, remedies[code])
	case remedies[code] != "":
		return fmt.Errorf("%w; %s", err, remedies[code])
	case code == "" && errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%w: %w", driver.ErrConnecting, err)
	case code != "" && strings.Contains(err.Error(), "unknown command"):
		return fmt.Errorf("%w; elections need Redis 7 or Valkey, with EVAL and EVAL_RO under these names", err)
	case code != "" && strings.Contains(err.Error(), "DB index"):
		return fmt.Errorf("%w; give a number below the server's setting databases; a Cluster has only 0", err)
	}
	return err
}
