package main

import (
	"context"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// site is a kind of store on servers of its own. Its file says how to start and reach them, and
// which experiments measure it.
type site struct {
	name  string // the prefix of its rows
	title string
	start func(b *bench, dir string) servers
	// connect runs in the process of a candidate.
	connect func(o observer) (client, error)
	rows    func() []experiment
}

// sites lists all of them. A new store is a file and an entry here.
func sites() []*site {
	return []*site{&natsSite, &clusterSite, &partedSite, &objectSite, &kafkaSite, &kfakeSite, &postgresSite, &pushedSite, &mariaSite}
}

// servers are those of a site, as the bench sees them. Errors end the trial.
type servers interface {
	// addresses are hosts and ports.
	addresses() []string
	// create makes a bucket, or whatever else the store keeps elections in.
	create(ctx context.Context, bucket string)
	stop()
}

// client is how a candidate's process reaches the servers.
type client interface {
	// open opens a bucket. Unless the command is quiet, the store reports its writes.
	open(c command) (driver.Store, error)
	// configure changes the configuration of an election. The context ends with the campaign.
	configure(ctx context.Context, c command, election string, cfg *tenure.Config) error
	// requests counts the requests so far, by kind; none where the servers count them.
	requests() counts
}

// counting servers count the requests of candidates themselves.
type counting interface {
	// counter begins to count, and returns a function that returns the counts: one for each
	// member, and perhaps others.
	counter(c *crew) func() []counts
}

// counts are numbers of requests by kind.
type counts map[string]int

// breakable servers can fail one by one. They are numbered from 0.
type breakable interface {
	servers
	// createAt makes a bucket that one of the servers leads.
	createAt(ctx context.Context, bucket string, home int)
	// faults lists what can happen to a server. The first is a restart in order.
	faults() []serverFault
	// whole waits until all servers are up and all copies complete.
	whole(ctx context.Context)
	// restore lets each bucket's own server lead it again.
	restore(ctx context.Context)
	// controller is the server that governs the others; -1: none does.
	controller(ctx context.Context) int
}

// serverFault strikes one server, and ends.
type serverFault struct {
	name       string
	begin, end func(server int) error
}

// mode is a way to use a store, for stores that know several.
type mode struct {
	name string
	// session is that of the consumer group which nominates.
	session choice[time.Duration]
	// polled: followers learn of changes by reading.
	polled bool
	// rest is how long a member needs after its first read to learn of changes at once.
	rest time.Duration
	// requests bounds those that ten candidates make while nothing happens.
	requests budget
}

// label begins the names of the mode's measures.
func (m mode) label() string { return strings.TrimPrefix(m.name+": ", ": ") }

// plain is the modes of a store that knows only one.
var plain = []mode{{}}
