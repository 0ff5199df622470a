//go:build integration

package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/tenure-go/tenure/internal/test/wait"
)

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
	if err := os.WriteFile(token, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
