package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/tenure/internal/demo"
	"github.com/tenure-go/tenure/cmd/tenure/internal/terminal"
)

const aboutDemo = `Starts candidates as processes of their own, lets them elect a leader, and every few seconds
kills the leader, freezes it, or asks it to end. A terminal shows who leads, the time left on the
lease as an observer can know it, who led when, and what failovers took beside the least that they
could take; q ends it. Elsewhere, and with --plain, each line shows when a candidate did what in
which term and why, and a new leader's line what the failover took.

Meanwhile every act of every leader is checked: none may come after the first act of a later term.
An overlap is reported and makes the exit code 1. Terms grow, with gaps: a new leader takes a
number above all writes to the bucket or topic, on object storage the server's clock in
milliseconds, so that none is ever used twice.

Without --store and --context a NATS server with JetStream is started for the demo, with --store
s3-embedded: a server of object storage, with kafka-embedded: three brokers of Kafka. As long as
they last, anybody on this machine can look into them with the nats command, with curl or with
Kafka's tools.

Object storage, --store s3://BUCKET[/PREFIX][?...], takes these parameters:
  endpoint=URL       a server other than S3 itself
  region=NAME        that of the bucket; us-east-1 does for most other servers
  path-style=BOOL    address the bucket by path; true by default where there is an endpoint
  unquoted=true      begin with ETags without quotes, as Ceph wants them; found out otherwise
Credentials come from where all of AWS's tools have them, such as AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws or the machine's role, never from the URL.

Kafka, --store kafka://[USER:PASSWORD@]HOST[:PORT],.../TOPIC[?...], takes these parameters:
  mode=neli          a consumer group names who is to lead: the owner of partition 0 of its topic
  group=NAME         the group; by default it is named like the election
  group-topic=NAME   its topic, any will do; by default the group's name with .neli
  nominee-only=true  nobody else ever claims; by default others do after a lease more
  without-goneli=true  others claim without the group too: no process of goNELI joins it any more
  session=15s        how long a member of the group may be silent
  replicas=N         how many brokers keep a topic that --create makes; by default three
  timeout=2s         how long a broker may take to answer; by default half a lease, 2s at most
With kafka-embedded:?... too. The topic is for elections alone. TLS and users come from a file of
client properties as Kafka's own tools take it, --kafka-properties: certificates in PEM,
sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; or from variables of the environment:
TENURE_KAFKA_USER, TENURE_KAFKA_PASSWORD, and such as TENURE_KAFKA_SECURITY_PROTOCOL for
security.protocol. The URL decides before the variables, and they before the file.

Object storage does not push changes. With --peer each candidate listens, publishes its address in
the record while it leads, and tells the others of renewals and of its release. A port of 0 is a
free one for each candidate, another one the first candidate's, and the others take those after it.
Only addresses in --peer-allow are dialled: by default those of the loopback interface if the
candidate's own address is one, and otherwise the private ones (10.0.0.0/8, 172.16.0.0/12,
192.168.0.0/16, fc00::/7). A public address needs --peer-allow. Without certificates peers talk
plain HTTP; what they tell is signed in any case.

Each line of --json has time, event, election, id and term. The library's events have their own
names (candidate, elected, leaving, lost, released, leader, trouble, ...) and perhaps a cause. The
demo's are named "demo" and have what it does in "do"; the last line is the "summary".

Environment, where the flag is not given:
  TENURE_*   any flag: TENURE_STORE for --store, TENURE_CRASH_EVERY for --crash-every and so on
  KEY        --election
  WORKERS    --candidates
  CONTEXT    --context, unless --store or TENURE_STORE is given
  NOSPLAY    1: --splay 0, no random delay at the start; that is the default, so it changes nothing
  NO_COLOR   no colours
  TERM       dumb: line by line`

const examplesDemo = `  tenure demo
  tenure demo --for 1m --lease 5s --json
  tenure demo --store nats://host:4222/ELECTIONS --create
  tenure demo --store s3-embedded:
  tenure demo --store s3-embedded: --peer 127.0.0.1:0
  tenure demo --store kafka-embedded:
  tenure demo --store 'kafka-embedded:?mode=neli&session=3s'
  tenure demo --store 's3://bucket/elections?endpoint=http://127.0.0.1:9000&region=us-east-1' --create
  tenure demo --store kafka://kafka-1:9092,kafka-2:9092/elections --kafka-properties client.properties`

// newDemo is the command that shows an election.
func newDemo() *cobra.Command {
	var d demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Show an election at work, and check it",
		Long:    aboutDemo,
		Example: examplesDemo,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := d.options(c.Flags(), os.Getenv)
			if err != nil {
				return err
			}
			o.Command, o.In, o.Out = reexecute, c.InOrStdin(), c.OutOrStdout()
			o.Await.Told = d.where.waiting(c.ErrOrStderr())
			o.Colour = terminal.Colours(o.Out)
			o.Live = !o.JSON && !o.Plain && !o.Verbose && terminal.Screen(o.Out)
			return demo.Run(c.Context(), o)
		},
	}
	d.define(c.Flags())
	return c
}

// reexecute runs this very program as a candidate.
func reexecute(id string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, "candidate", id)
}
