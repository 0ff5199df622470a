package main

import (
	"embed"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/rig"
)

// client is the connection of one process to its store, by the library of one peer.
type client interface {
	// Join campaigns in an election until Stop, again after each loss. It calls elected when this
	// process leads, and lost when it no longer does.
	Join(election string, elected, lost func()) (candidate, error)
}

// candidate is a process in one election.
type candidate interface {
	// Leads reports whether the process may act as the leader, as the library's users ask for that.
	Leads() bool
	// Stop hands over, if the process leads, and returns when the campaign has ended.
	Stop()
}

// place says where a process finds its servers, and how it campaigns.
type place struct {
	rig.Connector
	Bucket string // of the run, for stores that need one
	Lease  time.Duration
}

// peer is one way to elect a leader.
type peer struct {
	name, store string // store is the name of a rig
	// sources names the files with the code that its user writes: with_NAME.go.
	sources []string
	// leaseless is set if nothing expires by time. The lease is only the unit of the table.
	leaseless bool
	// direct is set if its client only finds the servers past the relays. So it is not cut off, and
	// its traffic is not counted.
	direct bool
	// alone is set if each trial needs a bucket of its own.
	alone bool
	// most is the number of elections that one process can hold; 0 means any.
	most int
	open func(place) (client, error)
}

// sources has the adapters.
//
//go:embed with_*.go
var sources embed.FS

// lines counts the lines of code in the sources: not imports, comments and empty lines.
func (p peer) lines() (n int) {
	for _, name := range p.sources {
		code, err := sources.ReadFile("with_" + name + ".go")
		if err != nil {
			panic(err) // the list below is wrong
		}
		n += lines(string(code))
	}
	return n
}

func lines(code string) (n int) {
	imports := false
	for line := range strings.Lines(code) {
		line = strings.TrimSpace(line)
		switch {
		case line == "import (":
			imports = true
		case imports:
			imports = line != ")"
		case line == "", strings.HasPrefix(line, "//"), strings.HasPrefix(line, "package "):
		default:
			n++
		}
	}
	return n
}

const tenureName = "Tenure"

// peers lists all of them, by store.
var peers = []peer{
	{name: tenureName, store: "etcd", sources: []string{"tenure", "tenure_etcd"}, open: tenureOnEtcd},
	{name: "etcd concurrency", store: "etcd", sources: []string{"etcd"}, open: openEtcd},
	{name: tenureName, store: "postgres", sources: []string{"tenure", "tenure_postgres"}, open: tenureOnPostgres},
	{name: "advisory lock", store: "postgres", sources: []string{"advisory"}, open: openAdvisory, leaseless: true, most: 50},
	{name: "pglock", store: "postgres", sources: []string{"pglock"}, open: openPglock},
	{name: tenureName, store: "redis", sources: []string{"tenure", "tenure_redis"}, open: tenureOnRedis},
	{name: "redislock", store: "redis", sources: []string{"redislock"}, open: openRedislock},
	{name: tenureName, store: "k8s", sources: []string{"tenure", "tenure_k8s"}, open: tenureOnKubernetes},
	{name: "client-go", store: "k8s", sources: []string{"clientgo"}, open: openClientgo},
	{name: tenureName, store: "nats", sources: []string{"tenure", "tenure_nats"}, open: tenureOnNATS},
	{name: tenureName, store: "kafka", sources: []string{"tenure", "tenure_kafka"}, open: tenureOnKafka},
	{
		name: "goNELI", store: "kafka", sources: []string{"goneli"}, open: openGoneli,
		direct: true, alone: true, most: 20,
	},
}
