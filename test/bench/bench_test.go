package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	workerMain()
	os.Exit(m.Run())
}

func openBench(t *testing.T) *bench {
	t.Helper()
	if !machine.Supported {
		t.Skip("the clocks of two processes cannot be compared here")
	}
	b, err := open(t.Context(), true, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

// TestProcesses keeps the measuring itself from rotting: a stop, a cut and a crash, once each.
func TestProcesses(t *testing.T) {
	b := openBench(t)
	bucket, err := b.bucket()
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.relayedCast("test", 3,
		command{Do: start, Bucket: bucket, Elections: []string{"test"}, Lease: time.Second, Ask: asking.ByTerm})
	defer c.dismiss()
	if err == nil {
		err = c.join(0, c.members...)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, leader, err := c.successor(0, nil)
	if err == nil {
		_, leader, err = c.handover(leader)
	}
	if err == nil {
		leader, err = c.cutOff(leader, true)
	}
	if err == nil {
		var f failover
		if f, _, err = c.failover(leader, c.journal.mark()); err == nil && f.late+crashLease < time.Second {
			t.Errorf("the next leader came %v after the last write of the dead one", f.late+crashLease)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if v := c.book.Judge(); !v.Safe() || v.Terms < 3 {
		t.Errorf("%+v", v)
	}
}

// TestUnanswered: which write a killed leader made last is known from what replaced it.
func TestUnanswered(t *testing.T) {
	all := []entry{
		{"old", report{What: sending, At: 10, Prev: "0"}},
		{"old", report{What: sending, At: 20, Prev: "1"}},
		{"new", report{What: sending, At: 25, Prev: "9"}},
		{"old", report{What: sending, At: 30, Prev: "2"}},
	}
	for _, c := range []struct {
		replaced string
		want     int64
		why      string
	}{
		{"2", 20, "the last one went out from that version, so it is not what was replaced"},
		{"3", 30, "nothing went out from that version, so it is the last one's"},
	} {
		if got, err := unanswered(all, "old", c.replaced); err != nil || got != c.want {
			t.Errorf("version %s: %d, %v; want %d: %s", c.replaced, got, err, c.want, c.why)
		}
	}
	if _, err := unanswered(all, "nobody", "1"); err == nil {
		t.Error("a write was found of somebody who made none")
	}
}

func TestQuantiles(t *testing.T) {
	var d dist
	for i := range 200 {
		d = append(d, time.Duration(200-i)*time.Millisecond)
	}
	if got, want := d.String(), "1.0 ms / 100 ms / 198 ms / 200 ms, n=200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{"-rows", exitOK, "crash"},
		{"-row nonsense", exitUsage, "there is no row"},
		{"stray", exitUsage, ""},
	} {
		var out strings.Builder
		if got := run(t.Context(), strings.Fields(c.args), &out, &out); got != c.want || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, got, out.String(), c.want, c.says)
		}
	}
}

func TestTable(t *testing.T) {
	table := table{}
	table.add(result{row{name: "r", title: "a title", note: "A note"},
		[]measure{{what: "x", value: "1 ms", verdict: missed}, {what: "y", verdict: held}}, "Noise"})
	var plain, markdown strings.Builder
	table.print(&plain, false)
	table.print(&markdown, true)
	if table.worst() != missed {
		t.Errorf("worst: %v", table.worst())
	}
	for _, want := range []string{"| r | x | 1 ms |  | MISSED |", "|  | y |", "- r: a title. A note. Noise."} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the markdown lacks %q:\n%s", want, markdown.String())
		}
	}
	if !strings.Contains(plain.String(), "MISSED") {
		t.Errorf("the table lacks the verdict:\n%s", plain.String())
	}
}
