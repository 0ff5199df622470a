package connection

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// A connection without any traffic is found dead after the ping that follows the last one that
	// may be unanswered: 3 s.
	pingEvery   = time.Second
	pingsAtRisk = 2
	// writePatience is how long one write may take to leave, under the library's lock.
	writePatience = 2 * time.Second

	// The pause after all servers were tried grows from the first to the last.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// settings returns a copy of the options, fit for elections and then changed by the program's own.
func settings(of nats.Options, change []nats.Option) (nats.Options, error) {
	if of.Name == "" {
		of.Name = "tenure"
	}
	of.Name += " (elections)"
	dropHandlers(&of)
	of.AllowReconnect, of.MaxReconnect, of.RetryOnFailedConnect = true, -1, false
	of.IgnoreAuthErrorAbort = true
	of.CustomReconnectDelayCB = retryAfter
	of.ReconnectBufSize, of.FlusherTimeout, of.ReconnectOnFlusherError = -1, writePatience, true
	of.PingInterval, of.MaxPingsOut = pingEvery, pingsAtRisk
	of.UseOldRequestStyle, of.Verbose = false, false
	for _, set := range change {
		if set == nil {
			continue
		}
		if err := set(&of); err != nil {
			return nats.Options{}, fmt.Errorf("an option of OwnConnection: %w", err)
		}
	}
	return of, nil
}

// dropHandlers removes all functions of the program that are notified of something. It keeps
// functions that fetch or choose something.
func dropHandlers(o *nats.Options) {
	o.ClosedCB, o.DisconnectedCB, o.DisconnectedErrCB, o.ReconnectErrCB = nil, nil, nil, nil
	o.ConnectedCB, o.ReconnectedCB, o.DiscoveredServersCB = nil, nil, nil
	o.AsyncErrorCB, o.LameDuckModeHandler = nil, nil
	o.NoCallbacksAfterClientClose = true
}

// retryAfter returns the pause after all servers were tried. It is half fixed and half random,
// since all clients of a cluster lose it together.
func retryAfter(rounds int) time.Duration {
	d := lastRetry
	if rounds < 6 {
		d = min(firstRetry<<rounds, lastRetry)
	}
	return d/2 + rand.N(d/2)
}
