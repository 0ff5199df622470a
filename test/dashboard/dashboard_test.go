//go:build integration

package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) { natsd.Tests(m) }

func quote(text string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a text
	return string(quoted)
}

// stage is a real server with a dashboard.
type stage struct {
	testing.TB
	tenure, store string
	server        *natsd.Server
	port          int
	flags         []string // further flags of the dashboard
	dashboard     *command.Process
	url           string
	candidates    map[string]*command.Process
	bucket        jetstream.KeyValue
}

func newStage(t testing.TB) *stage {
	t.Helper()
	server := natsd.Alone(t)
	free, err := ports.Free(1)
	must(t, err)
	s := &stage{
		TB: t, tenure: command.Build(t), store: server.URL() + "/ELECTIONS?pristine=true", server: server, port: free[0],
		candidates: map[string]*command.Process{},
	}
	s.makeBucket()
	return s
}

// makeBucket creates the bucket, so that the dashboard need not wait for the first candidate. With
// History 1 the server would not push a release that the next claim replaces at once, and the
// dashboard could not show how that term ended.
func (s *stage) makeBucket() {
	s.Helper()
	conn, err := nats.Connect(s.server.URL())
	must(s, err)
	s.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(s, err)
	s.bucket, err = js.CreateKeyValue(wait.Context(s.TB), jetstream.KeyValueConfig{Bucket: "ELECTIONS", History: 8, Storage: jetstream.FileStorage})
	must(s, err)
}

// startDashboard shows the given elections, or those that the store lists.
func (s *stage) startDashboard(elections ...string) {
	s.Helper()
	args := append([]string{"dashboard", "--json", "--store", s.store, "--listen", ports.Address(s.port)}, s.flags...)
	for _, e := range elections {
		args = append(args, "--election", e)
	}
	s.dashboard = command.Start(s.TB, s.tenure, args...)
	s.url = s.dashboard.Await(`"url":"([^"]+)"`)
}

// start starts a candidate of an election.
func (s *stage) start(election, id string) {
	s.Helper()
	s.candidates[id] = command.Start(s.TB, s.tenure, "run", "--store", s.store, "--election", election, "--id", id, "--lease", "2s", "--", "sleep", "1000")
}

// leaderCell returns an expression for the leader of an election in the table.
func leaderCell(election string) string {
	return fmt.Sprintf(`document.querySelector('tr[data-key$="/%s"] td[data-label=Leader]')?.innerText.trim()`, election)
}

// leads waits until the table shows one of the leaders, and returns it.
func (p *page) leads(election string, ids ...string) string {
	p.Helper()
	p.until("the table shows a leader of "+election, fmt.Sprintf(`%s.includes(%s)`, quoteAll(ids), leaderCell(election)))
	return value[string](p, leaderCell(election))
}

func quoteAll(texts []string) string {
	quoted, _ := json.Marshal(texts) //nolint:errchkjson // texts
	return string(quoted)
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// A leader is killed. Without a reload the page shows the change in the table and in the history of
// the election.
func TestPageFollowsACrashAndAHandOver(t *testing.T) {
	s := newStage(t)
	s.startDashboard("billing", "unused")
	ids := []string{"node-1", "node-2", "<img src=x onerror=window.hacked=1>"}
	for _, id := range ids {
		s.start("billing", id)
	}
	p := openPage(t, s.url)
	first := p.leads("billing", ids...)
	p.until("the worst is first", `document.querySelector('tbody th a').innerText === 'unused'`)
	s.candidates[first].Kill()
	second := p.leads("billing", without(ids, first)...)

	p.click(`a[href$="/billing"]`)
	p.says("Timeline of leaders")
	standby := without(without(ids, first), second)[0]
	p.until("the standby answers, and the killed leader has led before", fmt.Sprintf(
		`((text) => text.includes(%s + '\tcandidate\tyes\t0\t') && text.includes('\tanswered') && text.includes(%s + '\tnot known'))(
			document.querySelector('section[aria-label="Candidates"]').innerText)`, quote(standby), quote(first)))
	p.shoot("candidates", 1280, 1400, "light")
	p.shoot("candidates-dark", 390, 1800, "dark")
	p.until("the failover is shown", `document.body.innerText.includes('silence')`)
	p.until("the lease runs out", `document.querySelector('.timeline .expiring') !== null`)
	p.shoot("crash", 1280, 900, "light")
	third := without(without(ids, first), second)[0]
	s.do("hand-over", "--store", s.store, "--election", "billing", "--to", third)
	p.until("the hand-over is shown", `document.body.innerText.includes('released') && document.body.innerText.includes('2 s')`)
	p.until("three terms are shown", `document.body.innerText.includes('(3)')`)
	p.until("its downtime is shown", `document.querySelector('.failovers .down-time')?.innerText.endsWith('s')`)
	p.harmless()
}

// do runs the command.
func (s *stage) do(args ...string) {
	s.Helper()
	if out, err := exec.Command(s.tenure, args...).CombinedOutput(); err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

// harmless checks that no text of a record has run as a script.
func (p *page) harmless() {
	p.Helper()
	if value[bool](p, `window.hacked !== undefined || document.querySelectorAll('img[src=x]').length > 0`) {
		p.Error("a text of a record has become a part of the page")
	}
}

// Any content of a record is shown as text.
func TestPageShowsHostileRecords(t *testing.T) {
	s := newStage(t)
	const hostile = "<script>window.hacked=1</script>\x1b[31mred\u202egnp.exe\u200b"
	if _, err := s.bucket.Put(wait.Context(t), "hostile", []byte(hostile)); err != nil {
		t.Fatal(err)
	}
	s.startDashboard()
	p := openPage(t, s.url)
	p.until("it is listed", `document.querySelector('tr[data-key$="/hostile"]')?.innerText.includes('No leader')`)
	p.click(`a[href$="/hostile"]`)
	p.says("<script>window.hacked=1</script>")
	if text := value[string](p, bodyText); strings.ContainsAny(text, "\x1b\u202e\u200b") {
		t.Errorf("the page has the characters themselves: %q", text)
	}
	p.shoot("hostile", 1280, 900, "light")
	p.harmless()
}

func TestPageByKeyboard(t *testing.T) {
	names := []string{"billing", "nightly-reports", "scheduler"}
	s := newStage(t)
	s.startDashboard(names...)
	p := openPage(t, s.url)
	p.until("all are listed", `document.querySelectorAll('tbody tr').length === 3`)
	p.slash()
	p.do(chromedp.KeyEvent("night"))
	p.until("one is found", `document.querySelectorAll('tbody tr').length === 1`)
	p.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	p.says("Timeline of leaders")
	p.until("it is the one that was searched", `document.querySelector('h1').innerText.includes('nightly-reports')`)
}

// slash presses that key. The driver would type it, too, although the page prevents that.
func (p *page) slash() {
	p.Helper()
	value[bool](p, `document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}))`)
	p.until("the search has the focus", `document.activeElement.id === 'search'`)
}

// The dashboard ends and comes back. Then the store does the same.
func TestPageReconnects(t *testing.T) {
	s := newStage(t)
	s.startDashboard("billing")
	s.start("billing", "node-1")
	p := openPage(t, s.url)
	p.leads("billing", "node-1")
	s.dashboard.Kill()
	p.until("a banner reports it", `!document.getElementById('banner').hidden`)
	s.startDashboard("billing")
	p.until("the banner goes", `document.getElementById('banner').hidden && document.getElementById('live').innerText === 'Live'`)
	p.leads("billing", "node-1")
}

// Many elections are listed a hundred at a time.
func TestPageOfManyElections(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("shard-%04d", i))
	}
	s := newStage(t)
	s.startDashboard(names...)
	p := openPage(t, s.url)
	p.says("1 to 100 of 2,000")
	p.until("a hundred rows", `document.querySelectorAll('tbody tr').length === 100`)
	p.slash()
	p.do(chromedp.KeyEvent("1999"))
	p.until("one is found", `document.querySelectorAll('tbody tr').length === 1 && document.body.innerText.includes('shard-1999')`)
	p.shoot("many", 1280, 700, "dark")
}

// signIn opens the page of a dashboard that allows actions, with the token.
func (s *stage) signIn() *page {
	s.Helper()
	p := openPage(s.TB, strings.Replace(s.url, "//", "//alice:s3cret@", 1))
	p.do(chromedp.Navigate(s.url)) // the browser remembers the password
	return p
}

func newActingStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	s.flags = []string{"--allow-actions", "--listen-token-file", token}
	return s
}

// fill types into a field of a form.
func (p *page) fill(name, text string) {
	p.Helper()
	field := fmt.Sprintf(`form input[name=%s]`, name)
	p.until(name+" is there", fmt.Sprintf(`document.querySelector(%s) !== null`, quote(field)))
	p.do(chromedp.SetValue(field, text))
}

// The button moves leadership to the named candidate.
func TestPageHandsOver(t *testing.T) {
	s := newActingStage(t)
	s.startDashboard("billing")
	ids := []string{"node-1", "node-2", "node-3"}
	for _, id := range ids {
		s.start("billing", id)
	}
	p := s.signIn()
	first := p.leads("billing", ids...)
	to := without(ids, first)[1]
	p.click(`a[href$="/billing"]`)
	p.fill("to", "nobody")
	p.shoot("actions", 1280, 900, "light")
	p.click(`form button`)
	p.says("If it does not accept, nothing changes.")
	p.shoot("actions-confirm", 1280, 900, "light")
	p.click(`button[value=cancel]`)
	p.fill("to", "nobody")
	p.click(`form button`)
	p.click(`button[value=yes]`)
	p.says("Waiting for nobody to accept. Until then " + first + " goes on leading.")
	p.fill("to", to)
	p.click(`form button`)
	p.click(`button[value=yes]`)
	p.until("it leads", fmt.Sprintf(`document.querySelector('.facts dd').innerText.trim() === %s`, quote(to)))
	p.says(to + " leads now.")
	wait.Until(t, "the log names the user", func() bool {
		return strings.Contains(s.dashboard.Says(), `"msg":"dashboard: hand-over"`) && strings.Contains(s.dashboard.Says(), `"user":"alice"`)
	})
	if strings.Contains(s.dashboard.Says(), "s3cret") {
		t.Error("the log has the token")
	}
}

// A foreign record is replaced when the name of its election is typed. Then a candidate leads.
func TestPageResets(t *testing.T) {
	s := newActingStage(t)
	if _, err := s.bucket.Put(wait.Context(t), "billing", []byte("<b>junk</b>\xff")); err != nil {
		t.Fatal(err)
	}
	s.startDashboard("billing")
	s.start("billing", "node-1")
	p := s.signIn()
	p.click(`a[href$="/billing"]`)
	p.fill("lease", "2")
	p.fill("confirm", "bill")
	p.click(`form button`)
	p.says("Nothing was done: the name that was typed is not the election's")
	p.fill("confirm", "billing")
	p.click(`form button`)
	p.says("The record was replaced.")
	p.until("a candidate leads", `document.querySelector('.facts dd').innerText.trim() === 'node-1'`)
}

// The store goes away and comes back. One banner says so, the page is no longer live, and the
// election keeps its last known leader. Afterwards the outage is in the list of failovers.
func TestPageShowsAnOutage(t *testing.T) {
	s := newStage(t)
	s.startDashboard("billing")
	s.start("billing", "node-1")
	p := openPage(t, s.url)
	p.leads("billing", "node-1")
	s.server.Kill()
	p.until("one banner reports it", `document.querySelectorAll('.away').length === 1`)
	p.until("the page is not live", `document.getElementById('live').innerText === 'Stale'`)
	p.until("the last known leader is shown", leaderCell("billing")+`.replace(/\s+/g, ' ') === 'node-1 last known'`)
	p.until("the row has no error", `document.querySelector('tbody .problem') === null`)
	p.shoot("outage", 1280, 560, "light")
	p.click(`a[href$="/billing"]`)
	p.says("Last known leader")
	if text := value[string](p, `document.querySelector('.away p').innerText`); len(text) > 250 {
		t.Errorf("the banner is long: %s", text)
	}
	p.until("nothing contradicts it", `!document.querySelector('.headline').innerText.includes('No leader')`)
	p.shoot("outage-election", 1280, 900, "dark")
	p.shoot("outage-phone", 390, 800, "light")
	must(t, s.server.Start())
	p.until("the banner goes", `document.querySelector('.away') === null && document.getElementById('live').innerText === 'Live'`)
	p.says("Store OK")
	p.until("the outage is listed", `document.querySelector('.failovers .outage') !== null && document.querySelector('.events .store') !== null`)
	p.until("it leads again", `document.querySelector('.headline').innerText.includes('Leads for')`)
	p.shoot("recovered", 1280, 900, "light")
}

// The time that the timeline shows follows keys and a drag, and the address keeps it.
func TestPageRangeOfTime(t *testing.T) {
	s := newStage(t)
	s.flags = []string{"--log-url", "https://logs.example/?q={election}&id={leader}"}
	s.startDashboard("billing", "unused")
	s.start("billing", "node 1")
	p := openPage(t, s.url)
	p.leads("billing", "node 1")
	p.click(`thead a[href*="sort=name"]`)
	p.until("the first by name", `document.querySelector('tbody th a').innerText === 'billing'`)
	p.click(`a[href$="/billing"]`)
	p.until("the logs have a link", `document.querySelector('a[href="https://logs.example/?q=billing&id=node%201"]')?.innerText === 'Logs'`)
	p.until("the words are explained without a pointer", `document.querySelector('.meanings dd') !== null`)
	p.until("several times are shown", `document.querySelectorAll('.timeline text.tick').length >= 3`)
	const length = `(() => { const [a, b] = /zoom=(\d+)-(\d+)/.exec(location.hash)?.slice(1) ?? [0, 0]; return b - a })()`
	value[bool](p, `document.querySelector('.timeline .part').dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true, cancelable: true}))`)
	p.until("a key halves it", length+` > 440000 && `+length+` < 460000`)
	value[any](p, `(() => {
		const svg = document.querySelector('.timeline'), box = svg.getBoundingClientRect()
		for (const [kind, x] of [['down', 400], ['move', 500], ['up', 600]]) {
			svg.dispatchEvent(new PointerEvent('pointer' + kind, {clientX: box.left + x, clientY: box.top + 5, button: 0, bubbles: true}))
		}
	})()`)
	p.until("a drag chooses a part", length+` > 50000 && `+length+` < 130000`)
	p.shoot("range", 1280, 700, "light")
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// jobState is the state of a job as package schedule keeps it: a tick each ten minutes.
func jobState(plan string, next time.Duration, states ...string) []byte {
	now := time.Now().UTC().Truncate(time.Second)
	last := now.Truncate(10 * time.Minute)
	at := func(t time.Time) string { return quote(t.Format(time.RFC3339)) }
	var ticks []string
	for i, state := range states {
		planned := last.Add(time.Duration(i+1-len(states)) * 10 * time.Minute)
		end := `,"ended":` + at(planned.Add(time.Duration(70+i)*time.Second))
		switch state {
		case "started":
			end = ""
		case "failed":
			end += `,"code":3,"error":"exit status 3: <b>disk full</b>"`
		}
		ticks = append(ticks, fmt.Sprintf(`{"planned":%s,"state":%q,"token":7,"id":"node-1","began":%[1]s,"attempt":1%[3]s}`, at(planned), state, end))
	}
	finished := strings.Trim(strings.Repeat("6,", 23), ",")
	return fmt.Appendf(nil, `{"format":"tenure-ticks/1","seq":9,"at":%s,"id":"node-1","token":7,"plan":%s,"next":%s,
		"success":{"ended":%s,"since":%[1]s},"ticks":[%[5]s],"missed":{"late":1203,"overlap":2,"last":%[1]s},
		"day":{"hour":%[6]s,"finished":[%[7]s],"failed":[1,0,0,0],"missed":[6,3,0,0,0,0,0,0]}}`,
		at(now), quote(plan), at(now.Add(next)), at(last.Add(-time.Hour)), strings.Join(ticks, ","),
		at(now.Truncate(time.Hour)), finished)
}

// The page shows the jobs of an election. Any content of a state is shown as text.
func TestPageShowsJobs(t *testing.T) {
	s := newStage(t)
	put := func(name string, state []byte) {
		_, err := s.bucket.Put(wait.Context(t), "nightly/jobs/"+name, state)
		must(t, err)
	}
	many := slices.Repeat([]string{"finished", "finished", "failed", "finished", "lost", "finished", "finished", "finished"}, 2)
	put("backup", jobState("*/10 * * * * Europe/Berlin", 5*time.Minute, append(many[1:], "started")...))
	put("invoices", jobState("0 3 * * * UTC", -time.Hour, append(many[1:], "failed")...))
	put("report", jobState("@daily UTC", 5*time.Hour, "finished", "finished"))
	put("strange", jobState("<img src=x onerror=window.hacked=1>", time.Hour))
	s.start("nightly", "node-1")
	wait.Until(t, "the first listing has it", func() bool {
		_, err := s.bucket.Get(wait.Context(t), "nightly")
		return err == nil
	})
	s.startDashboard()
	p := openPage(t, s.url)
	p.leads("nightly", "node-1")
	p.until("no job is an election", `document.querySelectorAll('tbody tr').length === 1`)
	p.click(`a[href$="/nightly"]`)
	const row = `[...document.querySelectorAll('.jobs tbody tr')].find((r) => r.dataset.key === 'job %s')`
	p.until("a run goes on", fmt.Sprintf(row, "backup")+`?.querySelector('.last')?.innerText.includes('running')`)
	p.until("a late tick is late", fmt.Sprintf(row, "invoices")+`.innerText.includes('due for 1 h')`)
	p.until("a failure has its error", fmt.Sprintf(row, "invoices")+`.innerText.includes('<b>disk full</b>')`)
	p.until("each tick has a cell with a text", fmt.Sprintf(row, "backup")+`.querySelectorAll('.ticks .ticked + title').length === 16`)
	p.until("the strip has a summary", fmt.Sprintf(row, "backup")+`.querySelector('.strip').getAttribute('aria-label').includes('11 finished, 2 failed, 2 lost, 1 running')`)
	p.says("1,203 late, 2 during a run")
	p.says("24 h: 138 finished, 1 failed, 9 missed")
	p.shoot("jobs", 1280, 1300, "light")
	p.shoot("jobs-dark", 1280, 1300, "dark")
	p.shoot("jobs-phone", 390, 1600, "light")
	p.shoot("jobs-phone-dark", 390, 1600, "dark")
	p.harmless()
}
