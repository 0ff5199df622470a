//go:build integration && unix

// Package command_test runs the tenure command on servers. The tests are in the module of the demo,
// which contains the servers.
package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/twmb/franz-go/pkg/kfake"
)

// binary is the path of the tenure command.
var binary string

func TestMain(m *testing.M) { program.Main(built{m}, nil) }

// built builds the command, and then runs the tests.
type built struct{ *testing.M }

func (b built) Run() int {
	dir, err := os.MkdirTemp("", "tenure-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "tenure")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/tenure-go/tenure/cmd/tenure").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	return b.M.Run()
}

// place is a store with the election "billing".
type place struct {
	*testing.T
	url string
}

// as returns the URL of a bucket with a user and a password.
func as(s *server.Server, user string) string {
	return strings.Replace(s.ClientURL(), "nats://", "nats://"+user+"@", 1) + "/ELECTIONS?pristine=true"
}

// tenure returns a command on the election.
func (p place) tenure(command string, more ...string) *program.Process {
	p.Helper()
	return program.Command(p.T, binary, append([]string{command, "--store", p.url, "--election", "billing", "--connect-timeout", "1h"}, more...)...)
}

func (p place) says(command string, more ...string) program.Result {
	p.Helper()
	return p.tenure(command, more...).Run()
}

// run starts a candidate whose command runs until a signal ends it.
func (p place) run(id string, flags ...string) *program.Process {
	p.Helper()
	const script = "trap 'exit 0' TERM; echo begun as $TENURE_ID; while :; do sleep 0.05; done"
	return p.tenure("run", append(append([]string{"--id", id, "--create"}, flags...), "--", "sh", "-c", script)...).Start()
}

// put writes bytes that are no record.
func put(t *testing.T, url, bucket, text string) {
	t.Helper()
	kv, err := servers.JetStream(t, url).KeyValue(t.Context(), bucket)
	if err == nil {
		_, err = kv.PutString(t.Context(), "billing", text)
	}
	must.OK(t, err)
}

func TestRunFailsOnAStoreThatRefuses(t *testing.T) {
	t.Parallel()
	s := servers.NATS(t, &server.User{Username: "user", Password: "s3cret"})
	for user, says := range map[string]string{"user:s3cret": "there is no bucket ELECTIONS", "user:s3cret-not": `\*\*\*`} {
		place{t, as(s, user)}.says("run", "--log-level", "debug", "--", "true").Must(t, 125, "^error: .*"+says, "^hint: ")
	}
}

// withLooker starts a server with the users all:x and looker:s3cret, which may not write.
func withLooker(t *testing.T) *server.Server {
	t.Helper()
	publish := []string{"$JS.API.STREAM.MSG.GET.KV_ELECTIONS", "$JS.API.STREAM.INFO.KV_ELECTIONS", "$JS.API.CONSUMER.CREATE.KV_ELECTIONS.*.$KV.ELECTIONS.>", "$JS.FC.KV_ELECTIONS.>", "$JS.API.CONSUMER.DELETE.KV_ELECTIONS.*"}
	return servers.NATS(t, &server.User{Username: "all", Password: "x"}, &server.User{
		Username: "looker", Password: "s3cret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		},
	})
}

// A user with the right to read can observe. An error names the missing right for anything else.
func TestObserversNeedNoRightToWrite(t *testing.T) {
	t.Parallel()
	s := withLooker(t)
	leader := place{t, as(s, "all:x")}.run("node-1")
	leader.Says("begun as node-1")
	looker := place{t, as(s, "looker:s3cret")}
	looker.says("status").Must(t, 0, `^leader    node-1 in term`)
	watch := looker.tenure("watch").Start()
	watch.Says("node-1 in term")
	watch.Stops(0)
	const denied = `^error: --store nats://\*\*\*@.*/ELECTIONS: .*permission denied.*\$KV\.ELECTIONS\.billing`
	looker.says("hand-over").Must(t, 1, denied, `^hint: grant it`)
	leader.Stops(0)
	put(t, strings.TrimSuffix(as(s, "all:x"), "/ELECTIONS?pristine=true"), "ELECTIONS", "node-1")
	looker.says("reset", "--force").Must(t, 1, denied, `^hint: grant it`)
}

// Where the right to answer is missing, the candidate takes part all the same, and all sides say
// so.
func TestCandidatesWithoutTheRight(t *testing.T) {
	t.Parallel()
	s := servers.NATS(t, &server.User{Username: "user", Password: "s3cret", Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.>", "$KV.ELECTIONS.>", "$JS.FC.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}})
	p := place{t, as(s, "user:s3cret")}
	w := p.run("node-1")
	w.Says("begun as node-1")
	w.Says("observers cannot see this candidate")
	var r program.Result
	wait.Until(t, "the refusal comes while status waits for answers", func() bool {
		r = p.says("status")
		return strings.Contains(r.Out, "permission denied")
	})
	r.Must(t, 0, `^leader    node-1 in term`, `^candidate none answered: .*permission denied: the user may not publish to tenure\.candidates\.ELECTIONS`)
}

// Two processes take part in an election on NATS. Both answer, until one is killed.
func TestCandidatesAnswerOverNATS(t *testing.T) {
	t.Parallel()
	p := place{t, as(servers.NATS(t, &server.User{Username: "user", Password: "s3cret"}), "user:s3cret")}
	first := p.run("node-1", "--lease", "3s")
	first.Says("begun as node-1")
	second := p.run("node-2", "--lease", "3s", "--priority", "-7")
	wait.Until(t, "both answer", func() bool {
		r := p.says("status")
		return strings.Contains(r.Out, "candidate node-1: ") && strings.Contains(r.Out, "candidate node-2: candidate, priority -7, lease 3s, last contact with the store ")
	})
	program.Command(t, binary, "list", "--store", p.url).Run().Must(t, 0, `^billing +node-1 .* 2 answered$`)
	_ = first.Cmd.Process.Kill()
	wait.Until(t, "one is left", func() bool {
		r := p.says("status", "--json")
		return strings.Contains(r.Out, `"leader":"node-2"`) && strings.Contains(r.Out, `"id":"node-2","known":"answered","state":"leader","eligible":true,"priority":-7,"leaseMillis":3000,`) && !strings.Contains(r.Out, `"id":"node-1"`)
	})
	_ = second.Cmd.Process.Kill()
	wait.Until(t, "its lease runs out", func() bool { return p.says("status").Code == 3 })
	p.says("status").Must(t, 3, `^record    node-2 held it`, `^candidate node-2: has led before$`)
}

// A candidate that answers that it is not eligible is not asked.
func TestHandOverToACandidateThatIsNotEligible(t *testing.T) {
	t.Parallel()
	p := place{t, as(servers.NATS(t, &server.User{Username: "user", Password: "s3cret"}), "user:s3cret")}
	leader := p.run("node-1")
	leader.Says("begun as node-1")
	store, err := places.Enter(t, places.Parse(t, p.url), false, "")
	must.OK(t, err)
	e, err := tenure.New(store.Driver, "billing", tenure.Config{ID: "node-2"})
	must.OK(t, err)
	e.SetEligible(false)
	var campaign sync.WaitGroup
	campaign.Go(func() { _ = e.Run(t.Context(), func(context.Context, *tenure.Term) error { return nil }) })
	t.Cleanup(campaign.Wait)
	wait.Until(t, "it answers", func() bool { return strings.Contains(p.says("status").Out, "candidate node-2: ") })
	p.says("hand-over", "--to", "node-2", "--wait", "1h").Must(t, 1,
		`^error: node-2 answers that it is not eligible, so the leader is not asked$`, `^hint: make it eligible; --force asks`)
	if r := p.says("status"); strings.Contains(r.Out, "\nasked ") {
		t.Errorf("the leader is asked:\n%s", r.Out)
	}
}

// With --check-floor an unfit candidate leads if no other one does, and hands over to one that is
// fit. It is never asked to finish because it is unfit.
func TestCheckFloor(t *testing.T) {
	t.Parallel()
	p := place{t, as(servers.NATS(t, &server.User{Username: "user", Password: "s3cret"}), "user:s3cret")}
	dir := t.TempDir()
	fit := func(id string) string { return filepath.Join(dir, id) }
	enter := func(id string) *program.Process {
		return p.run(id, "--lease", "1s", "--check", "test -e "+fit(id), "--check-interval", "100ms", "--check-floor")
	}
	begins := func(w *program.Process, times int) {
		t.Helper()
		wait.Until(t, "it begins", func() bool { return strings.Count(w.Out.String(), "begun") >= times })
	}
	a := enter("node-1")
	begins(a, 1) // it was never fit
	must.Write(t, fit("node-2"), "")
	b := enter("node-2")
	begins(b, 1)
	begun := strings.Count(a.Out.String(), "begun")
	must.OK(t, os.Remove(fit("node-2")))
	b.Says("this candidate leads only while no other one does")
	must.Write(t, fit("node-1"), "")
	begins(a, begun+1)
	b.Stops(0)
	a.Stops(0)
	for _, w := range []*program.Process{a, b} {
		if left := regexp.MustCompile(`tenure: leaving.*reason=ineligible`).FindString(w.Errs.String()); left != "" {
			t.Error(left)
		}
	}
}

// A full bucket causes an error with the remedy.
func TestFullBucketIsReportedWithARemedy(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	kv, err := servers.JetStream(t, url).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "FULL", MaxBytes: 300, Storage: jetstream.FileStorage})
	must.OK(t, err)
	put(t, url, "FULL", "nobody's")
	if _, err := kv.PutString(t.Context(), "other", strings.Repeat("x", 130)); err != nil {
		t.Fatal(err)
	}
	p := place{t, url + "/FULL"}
	p.says("reset", "--force").Must(t, 1, `^error: --store .*/FULL: .*the server cannot store anything in bucket FULL: .*maximum bytes exceeded; look at its limits .*--max-bytes=-1$`)
	for _, c := range []struct {
		flags []string
		says  []string
		not   string
	}{
		// it does not warn at each start that other tools have made the bucket
		{nil, []string{"of 300 bytes of the bucket are in use", "setting=max_bytes"}, "first_seq"},
		{[]string{"--inspect"}, []string{"level=WARN msg=\"the bucket counts its writes from 1"}, "\x00"},
		{[]string{"--election", "long-" + strings.Repeat("x", 60)}, []string{
			"the server cannot store anything in bucket FULL: ", // trouble of a claim
			"if it is full, allow more: nats stream edit KV_FULL --max-bytes=-1",
		}, "\x00"},
	} {
		w := p.tenure("run", append(c.flags, "--", "true")...).Start()
		for _, text := range c.says {
			w.Says(text)
		}
		w.Stops(0)
		if strings.Contains(w.Errs.String(), c.not) {
			t.Errorf("it says %s:\n%s", c.not, &w.Errs)
		}
	}
}

// If the other end breaks a connection, that must not count as a closed standard output, although
// the system sends one signal for both.
func TestBrokenConnectionIsReported(t *testing.T) {
	t.Parallel()
	s := servers.Start(t, &server.Options{MaxConn: 1, JetStream: true})
	only := place{t, s.ClientURL() + "/ELECTIONS?pristine=true"}.run("node-1")
	only.Says("begun as node-1")
	for range 10 {
		place{t, s.ClientURL() + "/ELECTIONS"}.says("status", "--connect-timeout", "0s").Must(t, 1, "^error: --store .*maximum connections exceeded\nhint: ")
	}
	only.Stops(0)
}

// marker stands for a secret. No output may have a part of it.
const marker = "QZXJ"

// TestCommandsWithoutTheirServer: each command reports that the server is gone. None shows the
// password: neither while the store works, nor when it has gone, nor in the arguments of the guard
// and the environment of the command.
func TestCommandsWithoutTheirServer(t *testing.T) {
	t.Parallel()
	nats := servers.NATS(t, &server.User{Username: "u", Password: "pa@" + marker})
	p := place{t, as(nats, "u:pa@"+marker)}
	run := func(id string) *program.Process {
		return p.tenure("run", "--create", "--id", id, "--metrics", "0", "--lease", "2s", "--", "sh", "-c",
			"tr '\\0' ' ' </proc/$PPID/cmdline; env; echo up; trap 'exit 0' TERM; while :; do sleep 0.05; done").Start()
	}
	leader := run("node-1")
	leader.Says("up\n")
	standby, watch := run("node-2"), p.tenure("watch", "--json").Start()
	wrong := strings.Replace(p.url, marker, marker+"-not", 1) + "&migrating=true"
	page := program.Command(t, binary, "dashboard", "--json", "--listen", "0", "--store", p.url, "--store", wrong, "--election", "billing").Start()
	watch.Says("node-1")
	page.Says(`"serving"`)
	said := p.says("status").Out + p.says("status", "--json").Out
	overview := first(regexp.MustCompile(`"url":"(http://[^"]+/)"`), page.Out.String()) + "api/overview"
	program.Answers(t, overview, http.StatusOK, func(text string) bool {
		var o struct {
			Elections []struct{ Leader string }
			Sources   []struct{ Problem string }
		}
		return json.Unmarshal([]byte(text), &o) == nil && len(o.Elections) == 1 && o.Elections[0].Leader == "node-1" &&
			len(o.Sources) == 2 && o.Sources[0].Problem == "" && o.Sources[1].Problem != ""
	})
	metrics := map[*program.Process]string{}
	for _, w := range []*program.Process{leader, standby} {
		w.Says("metrics are served")
		metrics[w] = first(regexp.MustCompile(`url=(http://\S+)/metrics`), w.Errs.String())
		program.Answers(t, metrics[w]+"/healthz", http.StatusOK, program.Has("ok"))
	}
	nats.Shutdown()
	watch.Says(`"event":"store"`)
	watch.Says(`"event":"trouble"`)
	leader.Says(" times=") // it is logged once, and then with a count at growing intervals
	if n := strings.Count(leader.Errs.String(), "tenure: trouble"); n > 10 {
		t.Errorf("%d lines:\n%s", n, &leader.Errs)
	}
	program.Answers(t, metrics[standby]+"/healthz", http.StatusServiceUnavailable, program.Has("store operations failed in a row"))
	for _, url := range []string{metrics[leader] + "/metrics", strings.TrimSuffix(overview, "api/overview"), overview} {
		said += program.Answers(t, url, http.StatusOK, func(string) bool { return true })
	}
	for _, w := range []*program.Process{standby, watch, page} {
		w.Stops(0)
	}
	for _, w := range []*program.Process{leader, standby, page, watch} {
		said += w.Out.String() + w.Errs.String()
	}
	if !strings.Contains(said, "nats://***@127.0.0.1") || !strings.Contains(said, "guard") || strings.Contains(said, marker) {
		t.Errorf("they say\n%s", said)
	}
}

// first returns the first group of the first match.
func first(pattern *regexp.Regexp, text string) string { return pattern.FindStringSubmatch(text)[1] }

// Observers do the same on other kinds of stores.
func TestObserversOnObjectStorageAndKafka(t *testing.T) {
	t.Parallel()
	brokers := servers.Kafka(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "s3cret"))
	for name, url := range map[string]string{
		"object storage": servers.StartObjects(t).URL, "Kafka": "kafka://user:s3cret@" + brokers + "/elections?timeout=20s",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{t, url}
			// a lease that a slow machine does not lose
			first := p.run("node-1", "--lease", "8s", "--renew", "500ms")
			first.Says("begun as node-1")
			second := p.run("node-2", "--lease", "8s")
			second.Says("leader=node-1")
			p.says("status", "--json").Must(t, 0, `"record":"held","leader":"node-1".*"leaseMillis":8000`)
			wait.Until(t, "a hand-over", func() bool { return p.says("hand-over", "--to", "node-2", "--wait", "1h").Code == 0 })
			second.Says("begun as node-2")
			watch := p.tenure("watch", "--json").Start()
			watch.Says(`"leader":"node-2"`)
			seen := watch.Out.String()
			first.Stops(0)
			second.Stops(0)
			watch.Says(`"term":0}`) // nobody leads
			watch.Stops(0)
			for _, event := range []string{`"event":"failover"`, `"event":"leader"`} {
				if n := strings.Count(strings.TrimPrefix(watch.Out.String(), seen), event); n > 1 {
					t.Errorf("a leader that goes on and leaves, and the watch reports %s %d times:\n%s", event, n, &watch.Out)
				}
			}
			p.says("status").Must(t, 3, `^record    released by node-2`)
			p.says("reset", "--force").Must(t, 1, "there is nothing to reset: the record is released$")
		})
	}
}

// doctor judges servers by their answers, and rights by those of the user.
func TestDoctorOnServers(t *testing.T) {
	t.Parallel()
	s := withLooker(t)
	kafka := "kafka://" + servers.Kafka(t) + "/elections"
	for _, url := range []string{as(s, "all:x"), kafka} {
		_, err := places.Enter(t, places.Parse(t, url), true, "")
		must.OK(t, err)
	}
	careless := servers.StartObjects(t)
	careless.Careless.Store(true)
	for _, c := range []struct {
		why, url string
		code     int
		wants    []string
	}{
		{"a sound server", as(s, "all:x"), 0, []string{`^  conditional writes  ok: `, `^  pushes +ok: `, `^  right to write +ok: `, `^left in the store: tenure-doctor\.\w+; to remove it: nats `}},
		{"no right to write", as(s, "looker:s3cret"), 5, []string{`^  right to write +unsafe: .*the right`, `permission denied`, `^  conditional writes  unknown: .*a right is missing`, `^unsafe: right to write`}},
		{"object storage that ignores conditions", careless.URL, 5, []string{`^  settings +unsafe: If-None-Match: `, `^  conditional writes  unsafe: `, `^unsafe: settings, conditional writes; unknown: right to write, writes, lease$`}},
		{"Kafka", kafka, 0, []string{`^  conditional writes  ok: `, `^  pushes +ok: `}},
		{"object storage", servers.StartObjects(t).URL, 0, []string{`^  conditional writes  ok: `, `^  pushes +ok: this store does not push`, `^  cost +ok: 518400 writes`}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			r := place{t, c.url}.says("doctor")
			if c.code == 0 && r.Code == 4 { // a busy machine may be too slow for a call
				r.Code = 0
			}
			r.Must(t, c.code, c.wants...)
		})
	}
}
