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
	if err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate(url))
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.Fatal(err)
	}
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
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600); err != nil {
		p.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(1280, 900))
}
