package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/internal/overlay"
	"github.com/tenure-go/tenure/internal/planted"
)

// bug is a planted bug. The simulation must notice it.
type bug struct{ planted.Bug }

// verdict is the result of a run over several seeds, as one process sends it to another.
type verdict struct {
	Ran, Failed, First uint64
	Fault              string
	Others             uint64 // seeds that failed with a fault that does not match Shows
	Other              string
	Led                float64 // the part of the time in which there was a leader
}

// enough is the number of standard seeds that must find a bug by the faults in Shows.
const enough = 5

// hunt builds the bug and runs seeds 1 to n on one core. Without all it ends at the first seed that
// finds the bug. A bug may make the machine loop endlessly, which counts as found too.
func (b *bug) hunt(seeds uint64, all bool) (v verdict, err error) {
	err = b.Build("./internal/sim", func(binary string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "-seeds", strconv.FormatUint(seeds, 10), "-json", "-all="+strconv.FormatBool(all), "-shows", b.Shows)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		out, err := cmd.Output()
		if ctx.Err() != nil {
			v = verdict{Ran: 1, Failed: 1, First: 1, Fault: "it never ends"}
			return nil
		}
		if json.Unmarshal(out, &v) != nil {
			return fmt.Errorf("bug %s: %w\n%s", b.Name, err, out)
		}
		return nil
	})
	return v, err
}

// fails runs the deterministic test with the bug. It returns whether the test notices, and what the
// test prints.
func (b *bug) fails() (v verdict, out []byte, err error) {
	err = b.Plant(func(run overlay.Tool, _ string) (err error) {
		pattern := "^" + strings.ReplaceAll(b.Test, "/", "$/^") + "$"
		out, err = run("test", "-count=1", "-run", pattern, "./"+cmp.Or(b.In, "internal/protocol")).CombinedOutput()
		switch {
		case err == nil:
		case !strings.Contains(string(out), "--- FAIL"):
			return fmt.Errorf("bug %s: %w\n%s", b.Name, err, out)
		default:
			v = verdict{Failed: 1, Fault: b.Test}
		}
		return nil
	})
	return v, out, err
}

// replay plants the bug. Then it runs the test that shows it, or this program in place of this
// process.
func replay(name string, args ...string) (status int) {
	found, err := planted.Find(name)
	b := bug{found}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Printf("%s (%s): %s\n", b.Name, b.Rule, b.Left)
	if b.Test != "" {
		v, out, failed := b.fails()
		_, _ = os.Stdout.Write(out)
		status, err = int(v.Failed), failed
	} else {
		err = b.Build("./internal/sim", func(binary string) error {
			cmd := exec.Command(binary, args...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if cmd.Run() != nil {
				status = 1
			}
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return status
}

// hunted is a bug and its result.
type hunted struct {
	bug
	verdict
	err error
}

// partOf returns every Nth bug from the Kth on, for a part "K/N"; all bugs for "".
func partOf(bugs []planted.Bug, part string) ([]planted.Bug, error) {
	if part == "" {
		return bugs, nil
	}
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 0 || n < 1 {
		return nil, fmt.Errorf("-part %q: want K/N, such as 0/3", part)
	}
	var some []planted.Bug
	for i := k % n; i < len(bugs); i += n {
		some = append(some, bugs[i])
	}
	return some, nil
}

// huntAll runs bugs, one on each core.
func huntAll(bugs []planted.Bug, seeds uint64) []hunted {
	all := make([]hunted, len(bugs))
	planted.OnEachCore(len(bugs), func(i int) {
		h := &all[i]
		h.bug = bug{bugs[i]}
		if h.Test != "" {
			h.verdict, _, h.err = h.fails()
		} else {
			h.verdict, h.err = h.hunt(seeds, true)
		}
	})
	return all
}

// listBugs prints the result of every bug, and fails if one was not found as it should be.
func listBugs(o *options) int {
	bugs, err := partOf(planted.All, o.part)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	all := huntAll(bugs, o.seeds)
	if o.mark {
		writeMarkdown(os.Stdout, all)
	} else {
		writeTable(os.Stdout, all)
	}
	status := 0
	for _, h := range all {
		if err := h.missed(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	return status
}

// missed explains why a bug does not count as found.
func (h *hunted) missed() error {
	switch {
	case h.err != nil:
		return h.err
	case h.Test != "" && h.Failed == 0:
		return fmt.Errorf("%s: %s passes with it", h.Name, h.Test)
	case h.Test == "" && h.Failed < enough && (h.Ran >= standard || h.Failed == 0):
		return fmt.Errorf("%s: %d of %d seeds show %q, fewer than %d; %d fail otherwise: %s", h.Name, h.Failed, h.Ran, h.Shows, enough, h.Others, h.Other)
	}
	return nil
}

// where returns the first seed that finds a bug, or the test that does.
func (h *hunted) where() string {
	switch {
	case h.Failed == 0:
		return "-"
	case h.Test != "":
		return h.Test
	}
	return fmt.Sprint(h.First)
}

func writeTable(out io.Writer, all []hunted) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "bug\trule\tfirst\tseeds\totherwise\tled\tfault")
	for _, h := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d/%d\t%d\t%.1f %%\t%s\n", h.Name, h.Rule, h.where(), h.Failed, h.Ran, h.Others, 100*h.Led, h.Fault)
	}
	_ = t.Flush()
}

const preface = `# Planted bugs

Each bug on this page leaves out a rule of the protocol, or a part of one. The simulation must find
it: at least %d of the %d standard seeds must fail with a fault that the bug causes directly.
"seeds" is the number of seeds that do, and "first" is the first of them. A bug is a change to the
text of the source, which ` + "`go build -overlay`" + ` applies; the source in the tree does not contain it.
To run one bug:

    go run ./internal/sim -bug NAME -seed FIRST -v

` + "`go run ./internal/sim -bugs -markdown`" + ` writes this page. It fails if a bug is not found.

| bug | rule | what is left out | first | seeds | what happens |
|---|---|---|---|---|---|
`

const byTest = `
## Found by a deterministic test

For each of these, a test fails with the bug: a test in internal/protocol, or in the root package if
it is a bug of the runner. Too few seeds meet the conditions that the bug needs, or it costs no more
than other faults do. ` + "`-bug NAME`" + ` runs that test.

| bug | rule | what is left out | test | why no seeds |
|---|---|---|---|---|
`

func writeMarkdown(out io.Writer, all []hunted) {
	fmt.Fprintf(out, preface, enough, standard)
	for _, h := range all {
		if h.Test == "" {
			fmt.Fprintln(out, h.row(), h.where(), "|", h.Failed, "|", cell(fault(h.Fault)), "|")
		}
	}
	fmt.Fprint(out, byTest)
	for _, h := range all {
		if h.Test != "" {
			fmt.Fprintf(out, "%s `%s` | %s |\n", h.row(), h.Test, cell(h.Note))
		}
	}
}

// row returns the row that the page must have, which a test checks.
func (b *bug) row() string {
	return fmt.Sprintf("| `%s` | %s | %s |", b.Name, b.Rule, cell(b.Left))
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// fault removes the time from a fault.
func fault(s string) string {
	if _, what, ok := strings.Cut(s, ": "); ok && strings.HasPrefix(s, "at ") {
		return what
	}
	return s
}
