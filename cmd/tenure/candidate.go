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
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/doctor"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
)

// commandOfCandidate returns a command that runs programs. Its errors have exit codes that those do
// not use.
func commandOfCandidate(
	use, short, long, examples string, define func(*pflag.FlagSet), run func(c *cobra.Command, args []string) error,
) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Example: examples,
		RunE: func(c *cobra.Command, args []string) error { return failed(run(c, args)) },
	}
	define(c.Flags())
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return failed(cli.FlagError(c, err)) })
	return c
}

// candidateFlags are the settings that all commands share that take part in an election and run
// programs under a guard.
type candidateFlags struct {
	where    cli.StoreFlags
	peers    peers.Flags
	web      web.Flags
	election string
	id       string

	lease, renew, stopWithin, finishWithin, splay time.Duration
	priority                                      int
	inspect, contain                              bool

	format, loudness string
	json             bool

	// The results of resolve.
	place   stores.Place
	members *peers.Settings
	// overridden are variables that the command line has replaced. They would mislead the command.
	overridden []string
	scraped    *web.Settings // of the server of metrics; nil: there is none
	level      slog.Level
}

// defineElection adds the flags of the election to those of a command.
func (r *candidateFlags) defineElection(f *pflag.FlagSet) {
	r.defineName(f)
	f.IntVar(&r.priority, "priority", 0, "-1000000 to 1000000: a candidate with a higher priority than the leader's, healthy for two leases, asks the leader to hand over")
	cli.Group(f, cli.GroupElection)
	r.defineLease(f)
}

func (r *candidateFlags) defineName(f *pflag.FlagSet) {
	f.SortFlags = false
	f.SetInterspersed(false) // the arguments after the command belong to the command
	r.where = cli.StoreFlags{Creates: true}
	r.where.Define(f)
	f.StringVar(&r.election, "election", "", "name of the election, the key in the store")
	f.StringVar(&r.id, "id", "", "name of this candidate, for people, not empty (default host name, process id and five random characters)")
	cli.Group(f, cli.GroupElection)
}

func (r *candidateFlags) defineLease(f *pflag.FlagSet) {
	f.DurationVar(&r.lease, "lease", 15*time.Second, "how long a leader may be silent before another takes over")
	f.DurationVar(&r.renew, "renew", 0, "time from one renewal to the next (default a third of the lease)")
	f.DurationVar(&r.stopWithin, "stop-within", 0,
		"when the lease is lost, the time from SIGTERM until SIGKILL has ended the command; this time is part of the lease (default a fifth of the lease, at most 5s; at least 100ms)")
	f.DurationVar(&r.finishWithin, "finish-within", 10*time.Second,
		"how long the command may take to finish when it is asked to; until then the lease is renewed")
	f.DurationVar(&r.splay, "splay", 0, "maximum random delay before the first claim")
	cli.Group(f, cli.GroupLease)
}

// defineRest adds the other flags, after those of the command itself.
func (r *candidateFlags) defineRest(f *pflag.FlagSet) {
	r.defineGuard(f)
	f.BoolVar(&r.inspect, "inspect", false, "test the store first, refuse it if it is unsafe, and warn of lesser findings; on object storage that takes about 1,300 requests")
	cli.Group(f, cli.GroupStore)
	r.peers.Define(f)
	cli.Group(f, cli.GroupPeers)
	r.web = web.Flags{Name: "metrics"}
	r.web.Define(f, "metrics for Prometheus")
	cli.Group(f, "Metrics")
	r.defineLog(f, "info")
	f.BoolVar(&r.json, "json", false, "the same as --log-format json")
	cli.Group(f, cli.GroupOutput)
}

func (r *candidateFlags) defineGuard(f *pflag.FlagSet) {
	f.BoolVar(&r.contain, "pid-namespace", false,
		"run the command in a PID namespace of its own, which the kernel ends when tenure and its guard are killed (Linux)")
	cli.Group(f, "Command")
}

func (r *candidateFlags) defineLog(f *pflag.FlagSet, level string) {
	f.StringVar(&r.format, "log-format", "text", "text or json, on standard error")
	f.StringVar(&r.loudness, "log-level", level, "debug, info, warn or error")
}

// resolve takes the settings from the command line, or else from the environment, checks them
// before anything is started, and sets the fields that follow from them. Own checks those of the
// command itself.
func (r *candidateFlags) resolve(f *pflag.FlagSet, env func(string) string, own func(from cli.Sources) error) error {
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
	return errors.Join(own(from), r.checkWords(from), r.checkElection(f, from))
}

func (r *candidateFlags) checkWords(from cli.Sources) error {
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
func (r *candidateFlags) checkElection(f *pflag.FlagSet, from cli.Sources) error {
	if f.Changed("stop-within") && r.stopWithin < guarded.LeastStopWithin {
		return fmt.Errorf("%s is %v; it must be at least %v", from.Named("stop-within"), r.stopWithin, guarded.LeastStopWithin)
	}
	limits, err := r.place.Limits()
	if err != nil {
		return err
	}
	return cli.Flags{Named: from.Named, Given: f.Changed}.Check(limits, r.election, r.config())
}

func (r *candidateFlags) config() tenure.Config {
	return tenure.Config{
		ID: r.id, Priority: r.priority, Lease: r.lease, StopWithin: r.stopWithin, FinishWithin: r.finishWithin,
		Tuning: tenure.Tuning{
			Renew: r.renew, Splay: r.splay,
			// constant: a guard that fails now and then does not make the pauses longer
			Backoff: func(int) time.Duration { return r.lease },
		},
	}
}

// log returns the log of this process, and a function that ends it. It warns of variables that set
// no flag.
func (r *candidateFlags) log(c *cobra.Command) (*slog.Logger, *patientLog) {
	out := newPatientLog(c.ErrOrStderr())
	log := r.logger(out)
	for _, name := range cli.UnknownVariables(c.Root(), os.Environ()) {
		log.Warn("a variable of the environment sets no flag: check its name", "variable", name)
	}
	return log, out
}

func (r *candidateFlags) logger(out io.Writer) *slog.Logger {
	return cli.NewLogger(out, r.level, r.format == "json")
}

// enter connects to the store, and returns all that an election needs. It begins to serve metrics
// before, if --metrics is given. Call leave after the election.
func (r *candidateFlags) enter(ctx context.Context, client string, log *slog.Logger) (*participation, error) {
	m, err := r.measure(log)
	if err != nil {
		return nil, err
	}
	p := &participation{measures: m, closers: []func() error{m.close}}
	if err := r.connect(ctx, client, p, log); err != nil {
		p.leave()
		return nil, err
	}
	p.config.Metrics = m.set
	return p, nil
}

func (r *candidateFlags) connect(ctx context.Context, client string, p *participation, log *slog.Logger) error {
	s, err := r.where.Connect(ctx, r.place, r.election, stores.Options{Client: client + " " + r.id, Lease: r.lease, Logger: log},
		func(err error) { log.Warn("the store cannot be reached yet", "cause", err) })
	if err != nil {
		return err
	}
	p.closers = append(p.closers, s.Close)
	if err := r.checkStore(ctx, s, log); err != nil {
		return err
	}
	return r.join(ctx, s, p, log)
}

// inspectWithin bounds the inspection of a store's settings without --inspect.
const inspectWithin = 5 * time.Second

// checkStore logs unsafe settings of the store, if it can read them. With --inspect it tests the
// store, and returns an error if it is unsafe.
func (r *candidateFlags) checkStore(ctx context.Context, s *stores.Store, log *slog.Logger) error {
	if !r.inspect && !r.place.Pushes() {
		return nil // this store has no settings to read, and a test needs many requests
	}
	if !r.inspect {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, inspectWithin)
		defer cancel()
	}
	found, err := r.inspectStore(ctx, s, log)
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

// inspectStore reads the settings of the store. With --inspect it also makes the other checks of
// tenure doctor that may refuse a store.
func (r *candidateFlags) inspectStore(ctx context.Context, s *stores.Store, log *slog.Logger) ([]driver.Finding, error) {
	if !r.inspect {
		return s.Inspect(ctx, r.lease)
	}
	found, undecided, err := doctor.Inspect(ctx, s.Driver, r.lease)
	if err != nil {
		return nil, r.place.Explain(err)
	}
	if undecided != nil {
		log.Warn("conditional writes could not be tested", "cause", undecided)
	}
	return found, nil
}

// participation holds the arguments of an election besides its name, and what to close after it.
type participation struct {
	opened   driver.Store // the store itself
	store    driver.Store // as the election uses it
	config   tenure.Config
	measures *measures
	closers  []func() error
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

// join adds the store with the nomination and the peers, if there are any.
func (r *candidateFlags) join(ctx context.Context, s *stores.Store, p *participation, log *slog.Logger) error {
	p.opened, p.store, p.config = s.Driver, s.Driver, r.config()
	p.config.Logger = slog.New(storeNamer{log.Handler(), r.place.String()})
	n, err := s.Nominate(ctx, r.election)
	if err != nil {
		return err
	}
	if n != nil {
		p.nominate(n, log)
	}
	if r.members == nil {
		return nil
	}
	m, err := r.members.Open(ctx, p.store, peerTrouble(log))
	if err != nil {
		return err
	}
	p.store, p.config.Address = m.Store, m.Address
	p.closers = append(p.closers, m.Close)
	return nil
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

// hearer reacts to the signals of this process.
type hearer interface{ Hear(s syscall.Signal) }

// hear passes the signals that this process receives on, until the returned function is
// called. Signals that this process inherited as ignored, such as from nohup, stay ignored.
func hear(h hearer, all []os.Signal) (stop func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range all {
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
				h.Hear(s.(syscall.Signal))
			case <-buried:
				guard.Bury()
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
func (r *candidateFlags) guard() *exec.Cmd {
	c := &exec.Cmd{Path: runningFile(), Args: []string{"tenure", nameOfGuard}}
	if r.contain {
		guard.Isolate(c)
	}
	return c
}

// uncontained adds a remedy to the error of a guard that could not make a PID namespace.
func (r *candidateFlags) uncontained(err error) error {
	if !r.contain {
		return err
	}
	return fault.New("if the system refuses it, allow this user to make user namespaces, or grant CAP_SYS_ADMIN; or leave it out: "+
		"a container whose first process is tenure, and a systemd unit, need none", "--pid-namespace: %w", err)
}
