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
	return []*site{&natsSite, &clusterSite, &partedSite, &objectSite, &kafkaSite, &kfakeSite, &postgresSite, &pushedSite, &mariaSite, &fileSite}
}

// servers are those of a site, as the bench sees them. Errors end the trial.
type servers interface {
	// addresses returns HOST:PORT of each server.
	addresses() []string
	// create creates a bucket, or the topic or table in which the store keeps elections.
	create(ctx context.Context, bucket string)
	stop()
}

// client connects a candidate's process to the servers.
type client interface {
	// open opens a bucket. Unless the command is quiet, the store reports its writes.
	open(c command) (driver.Store, error)
	// configure changes the configuration of an election. The context ends with the campaign.
	configure(ctx context.Context, c command, election string, cfg *tenure.Config) error
	// requests returns the number of requests so far, by kind. It is empty if the servers count
	// them.
	requests() counts
}

// counting is implemented by servers that count the requests of candidates.
type counting interface {
	// counter starts to count. It returns a function that returns the counts: one for each member,
	// and perhaps others.
	counter(c *crew) func() []counts
}

// counts holds numbers of requests by kind.
type counts map[string]int

// breakable is implemented by servers that can fail one by one. They are numbered from 0.
type breakable interface {
	servers
	// createAt creates a bucket that one of the servers leads.
	createAt(ctx context.Context, bucket string, home int)
	// faults lists the possible faults of a server. The first one is an orderly restart.
	faults() []serverFault
	// whole waits until all servers are up and all copies are complete.
	whole(ctx context.Context)
	// restore makes the server of createAt lead each bucket again.
	restore(ctx context.Context)
	// controller returns the server that controls the others, or -1 if there is none.
	controller(ctx context.Context) int
}

// serverFault is a fault of one server. End ends it.
type serverFault struct {
	name       string
	begin, end func(server int) error
}

// mode is a way to use a store, for stores that have several.
type mode struct {
	name string
	// session is the session timeout of the consumer group that nominates.
	session choice[time.Duration]
	// polled is set if followers learn of changes by reading.
	polled bool
	// rest is how long a member needs after its first read to learn of changes at once.
	rest time.Duration
	// requests bounds the requests of ten candidates while nothing happens.
	requests budget
}

// label returns the beginning of the names of the mode's measures.
func (m mode) label() string { return strings.TrimPrefix(m.name+": ", ": ") }

// plain holds the only mode of most stores.
var plain = []mode{{}}
