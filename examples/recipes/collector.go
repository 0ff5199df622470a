package recipes

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/tenure-go/tenure"
)

// LeaderElector is an extension of the OpenTelemetry Collector with the method that receivers look
// for in k8s_leader_elector, such as k8scluster. So they start on the leader only, on any store.
// Register it in your own build of the Collector with extension.NewFactory.
type LeaderElector struct {
	Election *tenure.Election

	end  context.CancelFunc
	done chan error

	mu        sync.Mutex
	leading   context.Context // nil while this process does not lead
	receivers []*receiver
}

type receiver struct {
	start   func(context.Context)
	stop    func()
	started bool
}

var _ extension.Extension = (*LeaderElector)(nil)

// Start begins to campaign.
func (l *LeaderElector) Start(context.Context, component.Host) error {
	ctx, end := context.WithCancel(context.Background())
	l.end, l.done = end, make(chan error, 1)
	go func() { l.done <- l.Election.Run(ctx, l.lead) }()
	return nil
}

// Shutdown stops the receivers and then releases the lease.
func (l *LeaderElector) Shutdown(ctx context.Context) error {
	if l.end == nil {
		return nil
	}
	l.end()
	select {
	case err := <-l.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// SetCallBackFuncs adds a receiver, and starts it if this process leads already. Stop must return
// when the receiver has stopped, within FinishWithin of the election, and within StopWithin after a
// loss.
func (l *LeaderElector) SetCallBackFuncs(start func(context.Context), stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &receiver{start: start, stop: stop}
	l.receivers = append(l.receivers, r)
	if l.leading != nil {
		r.startIn(l.leading)
	}
}

// startIn starts a receiver unless the process has been asked to stop.
func (r *receiver) startIn(leading context.Context) {
	if leading.Err() == nil {
		r.started = true
		r.start(leading)
	}
}

func (l *LeaderElector) lead(ctx context.Context, _ *tenure.Term) error {
	l.mu.Lock()
	l.leading = ctx
	for _, r := range l.receivers {
		r.startIn(ctx)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = nil
	for _, r := range l.receivers {
		if r.started {
			r.started = false
			r.stop()
		}
	}
	return nil
}
