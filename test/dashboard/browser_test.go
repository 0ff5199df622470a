//go:build integration

package dashboard

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// page is a tab of a real browser.
type page struct {
	testing.TB
	ctx context.Context
}

// openPage opens a tab at an address. Errors of the page's scripts and violations of its policy
// fail the test.
func openPage(t testing.TB, url string) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	// It outlives the time limit of waits, so that a failure can show the page.
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(all)
	t.Cleanup(end)
	p := &page{t, ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page fails: %+v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Source != log.EntrySourceNetwork { // a server may be gone
				t.Errorf("the browser says: %s", e.Entry.Text)
			}
		}
	})
	must(t, err)
	p.do(chromedp.Navigate(url))
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	must(p, chromedp.Do(p.ctx, steps...))
}

// value returns the value of an expression in the page.
func value[T any](p *page, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression in the page is true.
func (p *page) until(what, expression string) {
	p.Helper()
	wait.Succeeds(p, what, func(context.Context) error {
		if ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression)); ok || err != nil {
			return err
		}
		text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](bodyText))
		return errors.Join(fmt.Errorf("not yet; the page says\n%s", text), err)
	})
}

const bodyText = "document.body.innerText"

// says waits until the page contains a text.
func (p *page) says(text string) {
	p.Helper()
	p.until("it says "+text, bodyText+".includes("+quote(text)+")")
}

// click clicks the element of a selector.
func (p *page) click(selector string) {
	p.Helper()
	p.until(selector+" is there", fmt.Sprintf("document.querySelector(%s) !== null", quote(selector)))
	value[any](p, fmt.Sprintf("document.querySelector(%s).click()", quote(selector)))
}

var shots = flag.String("shots", "", "directory for screenshots; none are taken without it")

// shoot takes a screenshot if screenshots are requested.
func (p *page) shoot(name string, width, height int64, scheme string) {
	p.Helper()
	if *shots == "" {
		return
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, media); err != nil {
		p.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(width, height))
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p, err)
	must(p, os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600))
	p.do(chromedp.EmulateViewport(1280, 900))
}

// TestPictures takes the screenshots for the documentation, after some minutes of crashes and
// hand-overs: go test -tags integration -run Pictures ./test/dashboard -shots DIR.
func TestPictures(t *testing.T) {
	if *shots == "" {
		t.Skip("no screenshots are asked for")
	}
	must(t, os.MkdirAll(*shots, 0o755))
	s := newStage(t)
	if _, err := s.bucket.Put(wait.Context(t), "nightly-reports", []byte("kept by another program")); err != nil {
		t.Fatal(err)
	}
	s.startDashboard("billing", "nightly-reports", "scheduler", "search-index", "unused")
	for _, election := range []string{"scheduler", "search-index"} {
		s.start(election, election+"-1")
	}
	ids := []string{"node-1", "node-2", "node-3"}
	for _, id := range ids {
		s.start("billing", id)
	}
	p := openPage(t, s.url)
	for round := range 10 {
		leader := p.leads("billing", ids...)
		time.Sleep(25 * time.Second) // so that there is a history to show
		if round%3 == 1 {
			s.candidates[leader].Kill()
			p.leads("billing", without(ids, leader)...)
			s.start("billing", leader)
			continue
		}
		next := without(ids, leader)[round%2]
		s.do("hand-over", "--store", s.store, "--election", "billing", "--to", next)
		p.leads("billing", next)
	}
	time.Sleep(20 * time.Second)
	p.shoot("overview", 1280, 560, "light")
	p.shoot("overview-dark", 1280, 560, "dark")
	p.shoot("overview-phone", 390, 1000, "light")
	p.click(`a[href$="/billing"]`)
	p.says("Timeline of leaders")
	p.click(`.zoom a[href$="zoom=all"]`)
	p.until("all is shown", `document.querySelector('.zoom a[aria-current]').innerText === 'All'`)
	p.shoot("election", 1280, 900, "light")
	p.shoot("election-dark", 1280, 900, "dark")
	p.shoot("election-phone", 390, 1600, "light")
}
