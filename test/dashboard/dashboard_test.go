//go:build integration

package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	os.Exit(m.Run())
}

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
	server, err := natsd.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	free, err := ports.Free(1)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		s.Fatal(err)
	}
	s.bucket, err = js.CreateKeyValue(wait.Context(s.TB), jetstream.KeyValueConfig{Bucket: "ELECTIONS", History: 8, Storage: jetstream.FileStorage})
	if err != nil {
		s.Fatal(err)
	}
}

// startDashboard shows the given elections, or those that the store lists.
func (s *stage) startDashboard(elections ...string) {
	s.Helper()
	args := append([]string{"dashboard", "--json", "--store", s.store, "--listen", ports.Address(s.port)}, s.flags...)
	for _, e := range elections {
		args = append(args, "--election", e)
	}
	s.dashboard = command.Start(s.TB, s.tenure, args...)
	served := regexp.MustCompile(`"url":"([^"]+)"`)
	wait.Until(s.TB, "the dashboard is served", func() bool {
		at := served.FindStringSubmatch(s.dashboard.Says())
		if at != nil {
			s.url = at[1]
		}
		return at != nil
	})
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
