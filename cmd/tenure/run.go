//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/wrap"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
	"github.com/tenure-go/tenure/slots"
)

func newRun() *cobra.Command {
	var r runFlags
	c := &cobra.Command{
		Use:     "run --store URL --election NAME [flags] [--] COMMAND [ARG...]",
		Short:   "Run a command while leading, and only then",
		Long:    aboutRun,
		Example: examplesRun,
		RunE: func(c *cobra.Command, args []string) error {
			return failed(r.run(c, args))
		},
	}
	r.define(c.Flags())
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return failed(cli.FlagError(c, err)) })
	return c
}

// nameOfGuard is the first argument of a guard. The list of processes shows it.
const nameOfGuard = "guard"

// beGuard runs the guard and ends the process, if it was started as one. It is called before the
// commands are made, so that a guard needs little memory.
func beGuard() {
	if len(os.Args) < 2 || os.Args[1] != nameOfGuard {
		return
	}
	err := guard.Main(os.Args[2:])
	if err != nil {
		fault.Print(os.Stderr, err)
	}
	os.Exit(fault.Code(err))
}

// failed gives errors of run the exit code 125, which commands do not use, unless they have a code
// of run.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var f fault.Error
	if known := (*fault.Error)(nil); errors.As(err, &known) {
		f = *known
	}
	if f.Code > fault.NoLeader {
		return err
	}
	f.Err, f.Code = err, wrap.CodeFailed
	return &f
}

func (r *runFlags) run(c *cobra.Command, args []string) error {
	if err := r.resolve(c.Flags(), os.Getenv); err != nil {
		cli.WarnOfUnknownVariables(c) // one of them may be the reason
		return err
	}
	if len(args) == 0 {
		return fault.OfUsage(errors.New("there is no command to run"))
	}
	path, code, err := wrap.Find(args[0])
	if err != nil {
		return coded(code, err)
	}
	out := newPatientLog(c.ErrOrStderr())
	defer out.flush()
	log := r.logger(out)
	for _, name := range cli.UnknownVariables(c.Root(), os.Environ()) {
		log.Warn("a variable of the environment sets no flag: check its name", "variable", name)
	}
	quit := func(code int) {
		out.flush()
		os.Exit(code)
	}
	w, err := wrap.New(wrap.Options{
		Path: path, Args: args, Once: r.once, Restart: wrap.Restart(r.restart), StopWithin: r.stopWithin,
		Unset: r.overridden, Guard: r.guard, Log: log, Quit: quit,
	})
	if err != nil {
		if r.contain {
			err = fault.New("if the system refuses it, allow this user to make user namespaces, or grant CAP_SYS_ADMIN; or leave it out: "+
				"a container whose first process is tenure, and a systemd unit, need none", "--pid-namespace: %w", err)
		}
		return err
	}
	defer w.Close()
	if text := guard.Uncovered(r.contain); text != "" {
		log.Info(text)
	}
	defer hear(w)()
	if c.Context().Err() != nil { // the end was requested before the handler was in place
		w.Hear(syscall.SIGTERM)
	}
	p := &patience{wait: r.wait, none: r.noWait, wrapper: w}
	stop := p.begin()
	code, err = r.campaign(w, p, log)
	stop()
	w.Linger() // campaign has closed the store
	switch reason := w.GivenUp(); {
	case reason != nil:
		return reason
	case w.Context().Err() != nil && code == 0: // asked to end before there was a command
		return nil
	case code == 0 || err != nil:
		return coded(code, err)
	default:
		return fault.Exit(code)
	}
}

// coded gives an error an exit code, unless the code is 0.
func coded(code int, err error) error {
	if err == nil || code == 0 {
		return err
	}
	f := fault.New("", "%w", err)
	f.Code = code
	return f
}

// campaign takes part in the election, and returns the exit code and the error of the wrapper.
func (r *runFlags) campaign(w *wrap.Wrapper, patient *patience, log *slog.Logger) (code int, err error) {
	m, err := r.measure(log)
	if err != nil {
		return 0, err
	}
	defer m.close()
	s, err := r.where.Connect(w.Context(), r.place, r.election, stores.Options{Client: "tenure run " + r.id, Lease: r.lease, Logger: log},
		func(err error) { log.Warn("the store cannot be reached yet", "cause", err) })
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	if err := r.checkStore(w.Context(), s, log); err != nil {
		return 0, err
	}
	p, err := r.join(w.Context(), s, log)
	if err != nil {
		return 0, err
	}
	defer p.leave()
	p.config.Metrics = m.set
	p.hear(patient.hear)
	c, elections, err := r.candidate(p)
	if err != nil {
		return 0, cli.Flags{}.InFlags(err)
	}
	patient.election.Store(elections[0])
	m.joined(elections)
	return w.Run(c)
}

// candidate returns the candidate, and the elections in which it takes part.
func (r *runFlags) candidate(p *participation) (wrap.Candidate, []*tenure.Election, error) {
	if r.slots == 0 {
		e, err := tenure.New(p.store, r.election, p.config)
		return e, []*tenure.Election{e}, err
	}
	m, err := slots.New(p.store, r.election, slots.Config{Election: p.config, Slots: r.slots})
	if err != nil {
		return nil, nil, err
	}
	all := make([]*tenure.Election, r.slots)
	for i := range all {
		all[i] = m.ElectionOf(i + 1)
	}
	return slotCandidate{m}, all, nil
}

// slotCandidate leads one of the slots at a time.
type slotCandidate struct{ *slots.Member }

func (c slotCandidate) Run(ctx context.Context, lead tenure.Lead) error {
	return c.Member.Run(ctx, lead)
}

// hear passes the signals that this process receives to the wrapper, until the returned function is
// called. Signals that this process inherited as ignored, such as from nohup, stay ignored.
func hear(w *wrap.Wrapper) (stop func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range guard.Forwarded {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	buried := make(chan os.Signal, 1)
	if os.Getpid() == 1 {
		signal.Notify(buried, syscall.SIGCHLD)
	}
	go func() {
		for {
			select {
			case s, ok := <-signals:
				if !ok {
					return
				}
				w.Hear(s.(syscall.Signal))
			case <-buried:
				w.Bury()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		signal.Stop(buried)
		close(signals)
	}
}

// guard returns the command that runs this program as a guard, even if its file has been replaced
// by a newer one.
func (r *runFlags) guard() *exec.Cmd {
	self := "/proc/self/exe"
	if _, err := os.Stat(self); err != nil {
		self = os.Args[0]
		if found, err := os.Executable(); err == nil {
			self = found
		}
	}
	c := &exec.Cmd{Path: self, Args: []string{"tenure", nameOfGuard}}
	if r.contain {
		guard.Isolate(c)
	}
	return c
}

func (r *runFlags) logger(out io.Writer) *slog.Logger {
	return cli.NewLogger(out, r.level, r.format == "json")
}

// inspectWithin bounds the inspection of a store's settings without --inspect.
const inspectWithin = 5 * time.Second

// checkStore logs unsafe settings of the store, if it can read them. With --inspect it tests the
// store, and returns an error if it is unsafe.
func (r *runFlags) checkStore(ctx context.Context, s *stores.Store, log *slog.Logger) error {
	if !r.inspect && !r.place.Pushes() {
		return nil // this store has no settings to read, and a test needs many requests
	}
	if !r.inspect {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inspectWithin)
		defer cancel()
	}
	found, err := s.Inspect(ctx, r.lease)
	if err != nil {
		if r.inspect {
			return err
		}
		log.Debug("the store's settings cannot be looked at", "cause", err)
		return nil
	}
	for _, f := range found {
		if r.inspect && f.Severity == driver.Unsafe {
			return r.place.Unsafe(f)
		}
		level := slog.LevelWarn
		// A bucket that another tool made has sequence numbers that begin at 1. Most operators
		// accept that, so only --inspect warns of it.
		if f.Severity < driver.Warning || !r.inspect && f.Severity == driver.Warning && f.Setting == "first_seq" {
			level = slog.LevelDebug
		}
		log.Log(ctx, level, f.Problem, "severity", f.Severity.String(), "setting", f.Setting, "remedy", f.Remedy)
	}
	return nil
}

// participation holds the arguments of an election besides its name, and what to close after it.
type participation struct {
	store   driver.Store
	config  tenure.Config
	closers []func() error
}

// leave closes them. Call it after the election.
func (p *participation) leave() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		_ = p.closers[i]()
	}
}

// peerTrouble logs failures between members. An error without an election is of an incoming
// connection, or of the files with the certificates.
func peerTrouble(log *slog.Logger) func(election string, err error) {
	return func(election string, err error) {
		switch {
		case err == nil:
		case errors.Is(err, peer.ErrCertificates):
			log.Warn("the files of --peer-ca, --peer-cert and --peer-key cannot be used: the last good ones stay in use", "cause", err)
		case election == "":
			log.Warn("a connection to this process cannot be served", "cause", err)
		default:
			log.Warn("no reports from the leader over --peer: this candidate reads the store instead", "cause", err)
		}
	}
}

// join returns the store with the nomination and the peers, if there are any.
func (r *runFlags) join(ctx context.Context, s *stores.Store, log *slog.Logger) (*participation, error) {
	p := &participation{store: s.Driver, config: r.config()}
	p.config.Logger = slog.New(storeNamer{log.Handler(), r.place.String()})
	n, err := s.Nominate(ctx, r.election)
	if err != nil {
		return nil, err
	}
	if n != nil {
		p.nominate(n, log)
	}
	if r.members == nil {
		return p, nil
	}
	m, err := r.members.Open(ctx, p.store, peerTrouble(log))
	if err != nil {
		p.leave()
		return nil, err
	}
	p.store, p.config.Address = m.Store, m.Address
	p.closers = append(p.closers, m.Close)
	return p, nil
}

// hear adds a function that is called with each event.
func (p *participation) hear(also func(tenure.Event)) {
	before := p.config.OnEvent
	p.config.OnEvent = func(e tenure.Event) {
		if before != nil {
			before(e)
		}
		also(e)
	}
}

func (p *participation) nominate(n *stores.Nomination, log *slog.Logger) {
	p.config.Nomination, p.config.Metadata = n.Config, n.Metadata
	p.hear(func(e tenure.Event) {
		if e.Kind != tenure.EventLeader {
			return
		}
		if err := n.Check(e.Leader.Metadata); err != nil && !errors.Is(err, context.Canceled) {
			log.Error("two nominations for one election", "cause", err)
		}
	})
	p.closers = append(p.closers, n.Close)
}

// runFlags are the settings of run.
type runFlags struct {
	where    cli.StoreFlags
	peers    peers.Flags
	web      web.Flags
	election string
	id       string

	lease, renew, stopWithin, finishWithin time.Duration
	splay, wait                            time.Duration
	priority, slots                        int
	once, inspect, contain, noWait         bool

	restart, format, loudness string
	json                      bool

	// The results of resolve.
	place   stores.Place
	members *peers.Settings
	// overridden are variables that the command line has replaced. They would mislead the command.
	overridden []string
	scraped    *web.Settings // of the server of metrics; nil: there is none
	level      slog.Level
}

func (r *runFlags) define(f *pflag.FlagSet) {
	f.SortFlags = false
	f.SetInterspersed(false) // the arguments after the command belong to the command
	r.where = cli.StoreFlags{Creates: true}
	r.where.Define(f)
	f.StringVar(&r.election, "election", "", "name of the election, the key in the store")
	f.StringVar(&r.id, "id", "", "name of this candidate, for people, not empty (default host name, process id and five random characters)")
	f.IntVar(&r.priority, "priority", 0, "-1000000 to 1000000: a candidate with a higher priority than the leader's, healthy for two leases, asks the leader to hand over")
	f.IntVar(&r.slots, "slots", 0, "1 to 256: at most so many candidates run the command at a time; the elections are NAME/slots/1 and so on")
	cli.Group(f, cli.GroupElection)
	f.DurationVar(&r.lease, "lease", 15*time.Second, "how long a leader may be silent before another takes over")
	f.DurationVar(&r.renew, "renew", 0, "time from one renewal to the next (default a third of the lease)")
	f.DurationVar(&r.stopWithin, "stop-within", 0,
		"when the lease is lost, the time from SIGTERM until SIGKILL has ended the command; this time is part of the lease (default a fifth of the lease, at most 5s; at least 100ms)")
	f.DurationVar(&r.finishWithin, "finish-within", 10*time.Second,
		"how long the command may take to finish when it is asked to; until then the lease is renewed")
	f.DurationVar(&r.splay, "splay", 0, "maximum random delay before the first claim")
	cli.Group(f, cli.GroupLease)
	f.BoolVar(&r.once, "once", false, fmt.Sprintf("exit with %d when leadership is lost or handed over, and do not campaign again; --restart applies until then", wrap.CodeLost))
	f.DurationVar(&r.wait, "wait", 0, fmt.Sprintf("exit with %d if the command has not begun within this time; 0: no limit", wrap.CodeNotElected))
	f.BoolVar(&r.noWait, "no-wait", false, fmt.Sprintf("exit with %d at the first read that does not let this candidate lead at once", wrap.CodeNotElected))
	f.StringVar(&r.restart, "restart", string(wrap.RestartNever),
		"never, on-failure or always: run the command again when it ends by itself, after a pause, without giving up leadership")
	f.BoolVar(&r.contain, "pid-namespace", false,
		"run the command in a PID namespace of its own, which the kernel ends when tenure and its guard are killed (Linux)")
	cli.Group(f, "Command")
	f.BoolVar(&r.inspect, "inspect", false, "test the store first, refuse it if it is unsafe, and warn of lesser findings; on object storage that takes about 1,130 requests")
	cli.Group(f, cli.GroupStore)
	r.peers.Define(f)
	cli.Group(f, cli.GroupPeers)
	r.web = web.Flags{Name: "metrics"}
	r.web.Define(f, "metrics for Prometheus")
	cli.Group(f, "Metrics")
	f.StringVar(&r.format, "log-format", "text", "text or json, on standard error")
	f.StringVar(&r.loudness, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&r.json, "json", false, "the same as --log-format json")
	cli.Group(f, cli.GroupOutput)
}

// resolve checks all settings before anything is started, and sets the fields that follow from
// them.
func (r *runFlags) resolve(f *pflag.FlagSet, env func(string) string) error {
	from, err := cli.Fill(f, env, nil)
	if err != nil {
		return err
	}
	r.overridden = from.Overridden(f)
	if !f.Changed("stop-within") {
		r.stopWithin = min(r.lease/5, 5*time.Second)
	}
	if r.json {
		r.format = "json"
	}
	if err := r.where.Require(f, "election"); err != nil {
		return err
	}
	if r.place, err = r.where.Place(f, from, env); err != nil {
		return err
	}
	if r.election == "" {
		return fault.OfUsage(errors.New("--election is missing"))
	}
	if r.members, err = r.peers.Settings(from.Named); err != nil {
		return err
	}
	if r.scraped, err = r.web.Settings(from.Named); err != nil {
		return err
	}
	if r.members != nil && r.place.Pushes() {
		return fault.New("leave it out", "%s: %s pushes changes and needs no peers", from.Named("peer"), r.place.Kind())
	}
	return errors.Join(r.checkWords(from), r.checkElection(f, from))
}

func (r *runFlags) checkWords(from cli.Sources) error {
	if !slices.Contains(wrap.Restarts, wrap.Restart(r.restart)) {
		return fmt.Errorf("%s is %q; it must be never, on-failure or always", from.Named("restart"), r.restart)
	}
	if r.wait < 0 || r.wait > 0 && r.noWait {
		return fmt.Errorf("%s is %v; it must not be negative, nor given with --no-wait", from.Named("wait"), r.wait)
	}
	if r.slots != 0 && (r.noWait || r.priority != 0) {
		return fmt.Errorf("%s is %d; it must not be given with --no-wait or --priority", from.Named("slots"), r.slots)
	}
	if r.slots < 0 || r.slots > 256 {
		return fmt.Errorf("%s is %d; it must be from 1 to 256, or 0 for one election", from.Named("slots"), r.slots)
	}
	if r.format != "text" && r.format != "json" {
		return fmt.Errorf("%s is %q; it must be text or json", from.Named("log-format"), r.format)
	}
	if err := r.level.UnmarshalText([]byte(r.loudness)); err != nil {
		return fmt.Errorf("%s is %q; it must be debug, info, warn or error", from.Named("log-level"), r.loudness)
	}
	return nil
}

// checkElection checks the settings of the election. A given --stop-within must leave time to kill
// the command.
func (r *runFlags) checkElection(f *pflag.FlagSet, from cli.Sources) error {
	if f.Changed("stop-within") && r.stopWithin < wrap.LeastStopWithin {
		return fmt.Errorf("%s is %v; it must be at least %v", from.Named("stop-within"), r.stopWithin, wrap.LeastStopWithin)
	}
	limits, err := r.place.Limits()
	if err != nil {
		return err
	}
	return cli.Flags{Named: from.Named, Given: f.Changed}.Check(limits, r.election, r.config())
}

func (r *runFlags) config() tenure.Config {
	return tenure.Config{
		ID: r.id, Priority: r.priority, Lease: r.lease, StopWithin: r.stopWithin, FinishWithin: r.finishWithin,
		Tuning: tenure.Tuning{
			Renew: r.renew, Splay: r.splay,
			// constant: a guard that fails now and then does not make the pauses longer
			Backoff: func(int) time.Duration { return r.lease },
		},
	}
}
