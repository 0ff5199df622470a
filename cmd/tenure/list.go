package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/members"
	"github.com/tenure-go/tenure/internal/records"
)

const aboutList = `Lists all elections of a store, each with its leader. It takes part in no election and writes nothing.

It reads each record once, and so sees its last writer. Whether that candidate is still there is
confirmed only by a renewal that is seen. So list watches each record that looks old for up to --wait,
as status does, with one read each 5 s: until it is renewed, or the lease has run out. Ages are by
the clock of each leader.

Candidates besides the leader are known if they answer over the store (NATS), or at the URLs of
--member. They say what they like, and one that is cut off says nothing.

Exit codes:
  0  each election has a leader, or there is no election
  1  the store cannot be listed, or the leader of an election cannot be determined, or its key holds
     no election record
  2  a flag, an argument or a variable is wrong
  3  an election has no leader
  4  each record names a leader, but one of them is not confirmed, as with status

Each line of --json is one object for one election, with event "election" and the fields of
tenure status --json.`

const examplesList = `  tenure list --store nats://host:4222/ELECTIONS
  tenure list --store postgres://user@host/db --prefix billing- --wait 0
  tenure list --context prod --json | jq 'select(.leader == null) | .election'`

// listFlags are the flags of list.
type listFlags struct {
	where   cli.StoreFlags
	members memberFlags
	prefix  string
	wait    time.Duration
	json    bool

	place stores.Place
}

func newList() *cobra.Command {
	var l listFlags
	c := command("list --store URL", "List all elections of a store", aboutList, examplesList, l.run)
	f := c.Flags()
	l.where.Define(f)
	f.StringVar(&l.prefix, "prefix", "", "only elections whose names begin with this text")
	f.DurationVar(&l.wait, "wait", cli.UsualTimeout, "how long to watch records that look old; 0: not at all")
	l.members.define(f)
	cli.Group(f, "List")
	f.BoolVar(&l.json, "json", false, "one JSON object per line")
	cli.Group(f, cli.GroupOutput)
	return c
}

func (l *listFlags) resolve(c *cobra.Command) error {
	from, err := cli.Fill(c.Flags(), os.Getenv, nil)
	if err != nil {
		return err
	}
	if l.place, err = l.where.Place(c.Flags(), from, os.Getenv); err != nil {
		return err
	}
	return l.members.resolve(from.Named, 1)
}

func (l *listFlags) run(c *cobra.Command) error {
	if err := l.resolve(c); err != nil {
		return err
	}
	const anyKey = "list" // any key will do for the first read
	s, err := l.where.Connect(c.Context(), l.place, anyKey, stores.Options{Client: "tenure list"}, l.where.Waiting(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	names, err := l.names(c.Context(), s.Driver)
	if err != nil {
		return err
	}
	candidates := l.members.find(c.Context(), s.Driver, "")
	all, err := l.judgeAll(c.Context(), s.Driver, names)
	if err != nil {
		return err
	}
	f := candidates()
	for i := range all {
		all[i].Event, all[i].present = "election", f.of(all[i].Election, all[i].From)
	}
	l.print(c.OutOrStdout(), c.ErrOrStderr(), all, f)
	return verdict(all)
}

// listWithin bounds the list of the names.
const listWithin = 30 * time.Second

// names returns the names of the elections.
func (l *listFlags) names(ctx context.Context, store driver.Store) ([]string, error) {
	const hint = "name an election: tenure status --election NAME"
	bounded, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	names, err := driver.AbilitiesOf(store).Keys(bounded)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, fault.New(hint, "%v cannot list its elections", l.place)
	case err == nil:
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, l.prefix) })
		elections, _ := new(records.Jobs).Split(bounded, store, names)
		return elections, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fault.New("check the right to list; or "+hint, "%v does not list its elections in time: %w", l.place, err)
	}
	return nil, l.place.Explain(err)
}

const (
	// maxLooking is how many elections are read for the first time at once.
	maxLooking = 16
	// readEvery is the time between two reads of a record that looks old. It is also read when its
	// lease would be over.
	readEvery = 5 * time.Second
	// readLease is a lease of the observers, which only bounds one read.
	readLease = 30 * time.Second
)

// judgeAll reads all records, and then watches those that look old, all at once.
func (l *listFlags) judgeAll(ctx context.Context, store driver.Store, names []string) ([]standing, error) {
	group, err := tenure.NewGroup(store, tenure.Config{
		ID: operator(), Lease: readLease, Tuning: tenure.Tuning{NoWatch: true, Poll: readEvery, PollStable: readEvery},
	})
	if err != nil {
		return nil, err
	}
	all, failed := make([]standing, len(names)), make([]error, len(names))
	judge := func(at int, within time.Duration) {
		e, err := group.Election(names[at])
		if err == nil {
			o := &observer{Election: e, place: l.place, store: store}
			all[at], err = o.judge(ctx, within, func(string, time.Time, time.Duration) {})
		}
		failed[at] = err
	}
	each(len(names), maxLooking, func(at int) { judge(at, 0) })
	var old []int
	for at := range all {
		if failed[at] == nil && all[at].Leader != "" && all[at].LeftMillis == nil {
			old = append(old, at)
		}
	}
	if l.wait > 0 {
		each(len(old), len(old), func(i int) { judge(old[i], l.wait) })
	}
	return all, errors.Join(failed...)
}

// each calls do for each number below n, and at most so many at once.
func each(n, atOnce int, do func(i int)) {
	var tasks sync.WaitGroup
	slots := make(chan struct{}, max(atOnce, 1))
	for i := range n {
		slots <- struct{}{}
		tasks.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	tasks.Wait()
}

func (l *listFlags) print(out, errs io.Writer, all []standing, f *found) {
	if l.json {
		for _, st := range all {
			output.JSON(out, st)
		}
		return
	}
	if len(all) == 0 {
		text := fmt.Sprintf("no election in %v has a record", l.place)
		if l.prefix != "" {
			text = fmt.Sprintf("no election in %v has a name that begins with %q", l.place, l.prefix)
		}
		fmt.Fprintln(out, output.Plain(text))
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ELECTION\tLEADER\tTERM\tLEASE\tRENEWED\tCANDIDATES")
	for i := range all {
		fmt.Fprintln(w, all[i].line())
	}
	_ = w.Flush() // an error means that the reader has gone
	if why := f.unknown(); why != "" {
		fmt.Fprintf(errs, "note: %s\n", output.Plain(why))
	}
}

// line returns the columns of an election.
func (st *standing) line() string {
	cells := []string{st.Election, st.Leader, fmt.Sprint(st.Term), millis(st.LeaseMillis).String(), st.renewal(), st.present.count()}
	switch {
	case st.err != nil:
		cells[1], cells[2], cells[3], cells[4] = "not known", "-", "-", string(st.Record)
	case st.Leader == "":
		cells[1], cells[4] = "nobody", st.history()
	}
	for i, cell := range cells {
		cells[i] = output.Plain(cell)
	}
	return strings.Join(cells, "\t")
}

// count returns how many candidates are known, and how.
func (p present) count() string {
	n := map[string]int{}
	for _, c := range p.Candidates {
		n[c.Known]++
	}
	var all []string
	for _, known := range []string{members.Answered, members.Reported} {
		if n[known] > 0 {
			all = append(all, fmt.Sprint(n[known], " ", known))
		}
	}
	if len(all) == 0 {
		return p.none
	}
	return strings.Join(all, ", ")
}

// verdict returns the exit code, or an error that names the elections whose leader cannot be
// determined.
func verdict(all []standing) error {
	var unclear []string
	leaderless, unconfirmed := false, false
	for i := range all {
		switch st := &all[i]; {
		case st.err != nil:
			unclear = append(unclear, st.Election)
		case st.Record == admin.Absent: // deleted since it was listed
		case st.Leader == "":
			leaderless = true
		case st.unconfirmed():
			unconfirmed = true
		}
	}
	switch {
	case len(unclear) > 0:
		shown := unclear[:min(len(unclear), maxOthers)]
		return fault.New("tenure status --election NAME says what to do", "the leader cannot be determined for %d of %d elections: %s%s", len(unclear), len(all),
			strings.Join(shown, ", "), strings.Repeat(", ...", min(1, len(unclear)-len(shown))))
	case leaderless:
		return fault.Exit(fault.NoLeader)
	case unconfirmed:
		return fault.Exit(fault.NotConfirmed)
	}
	return nil
}
