//go:build integration

package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/adapt/clientgo"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/k8sd"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

const name = "operator"

// TestMain silences client-go and controller-runtime.
func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	ctrl.SetLogger(klog.Background())
	natsd.Tests(m)
}

// scheme has the only type that the API server of these tests knows.
var scheme = runtime.NewScheme()

func init() {
	if err := coordination.AddToScheme(scheme); err != nil {
		panic(err)
	}
}

func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(coordination.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return m, nil
}

// election is one over a store, with the objects on which the leading operator works.
type election struct {
	*testing.T
	api  *k8sd.Server
	site rig.Site
	book witness.Book
	all  int
}

// operator is a manager with one controller, which signs each object, and one more piece of work.
type operator struct {
	id   string
	lock *clientgo.Lock
	way  rig.Way
	stop context.CancelFunc
	done chan error
}

// sign is the reconciler: it writes its name into each object without one.
type sign struct {
	client.Client
	*operator
}

// Reconcile asks the term right before the act.
func (s sign) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	var o coordination.Lease
	if err := s.Get(ctx, q.NamespacedName, &o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if o.Spec.HolderIdentity != nil {
		return ctrl.Result{}, nil
	}
	if err := s.lock.Term().Err(); err != nil {
		return ctrl.Result{}, err
	}
	o.Spec.HolderIdentity = &s.id
	return ctrl.Result{}, s.Update(ctx, &o)
}

// start starts an operator with connections of its own.
func (e *election) start(id string) *operator {
	e.Helper()
	store, way := e.site.Open(e, e.all)
	e.all++
	lock, err := clientgo.New(store, name, clientgo.Config{Election: tenure.Config{ID: id}})
	rig.Must(e, err)
	times, yes := lock.Times(), true
	mgr, err := ctrl.NewManager(e.client(), ctrl.Options{
		Scheme: scheme, MapperProvider: mapper, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{k8sd.Namespace: {}}},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
		LeaseDuration: &times.LeaseDuration, RenewDeadline: &times.RenewDeadline, RetryPeriod: &times.RetryPeriod,
		GracefulShutdownTimeout: &times.StopWork,
	})
	rig.Must(e, err)
	o := &operator{id: id, lock: lock, way: way, done: make(chan error, 1)}
	rig.Must(e, ctrl.NewControllerManagedBy(mgr).For(&coordination.Lease{}).Complete(sign{mgr.GetClient(), o}))
	rig.Must(e, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { e.act(ctx, o); return nil })))
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	go func() { o.done <- lock.Run(ctx, mgr.Start) }()
	e.Cleanup(stop)
	return o
}

// client returns the configuration of a client.
func (e *election) client() *rest.Config {
	c := e.api.Config(k8sd.Admin)
	c.QPS, c.ContentType = -1, runtime.ContentTypeJSON
	return c
}

// act acts until its context ends. It asks nothing else, since no process is frozen here.
func (e *election) act(ctx context.Context, o *operator) {
	token := o.lock.Term().Token()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		now := machine.Now()
		if ctx.Err() != nil {
			return
		}
		e.book.Add(name, o.id, token, now)
	}
}

// signed makes an object, and waits for the name of the operator that signs it.
func (e *election) signed(object string) (by string) {
	e.Helper()
	c, err := client.New(e.client(), client.Options{Scheme: scheme, Mapper: must(mapper(nil, nil))})
	rig.Must(e, err)
	o := &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: k8sd.Namespace, Name: object}}
	rig.Must(e, c.Create(wait.Context(e), o))
	wait.Succeeds(e, "the signature of "+object, func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if o.Spec.HolderIdentity == nil {
			return fmt.Errorf("%s is not signed", object)
		}
		return nil
	})
	return *o.Spec.HolderIdentity
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// judge requires that no two operators acted at once.
func (e *election) judge() {
	if v := e.book.Judge(); !v.Safe() || v.Acts == 0 {
		e.Error(v)
	}
}

// rigs returns the rigs of both stores.
func rigs() []rig.Rig {
	return append(slices.DeleteFunc(sqld.Rigs(), func(r rig.Rig) bool { return r.Name != "postgres-pushes" }), natsd.One())
}

// over runs a test on each store.
func over(t *testing.T, test func(*election)) {
	for _, r := range rigs() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			api, err := k8sd.Fake.Start(t.TempDir())
			rig.Must(t, err)
			t.Cleanup(api.End)
			e := &election{T: t, api: api, site: r.Start(t, false)}
			e.begin()
			test(e)
			e.judge()
		})
	}
}

// begin holds the election once, so that the operators need not wait for their long lease over a
// key that was never written.
func (e *election) begin() {
	e.Helper()
	store, _ := e.site.Open(e, e.all)
	e.all++
	first, err := tenure.New(store, name, tenure.Config{Lease: max(time.Second, driver.AbilitiesOf(store).MinLease())})
	rig.Must(e, err)
	rig.Must(e, first.Run(wait.Context(e), func(context.Context, *tenure.Term) error { return nil }))
}

// TestOperatorsElect: the operator that leads does the work, and another one after it has stopped.
func TestOperatorsElect(t *testing.T) {
	over(t, func(e *election) {
		a := e.start("a")
		if by := e.signed("first"); by != "a" {
			e.Errorf("%s signed the first object", by)
		}
		b := e.start("b")
		if by := e.signed("second"); by != "a" {
			e.Errorf("%s signed the second object, and a leads", by)
		}
		first := a.lock.Term().Token()
		a.stop()
		if err := <-a.done; err != nil {
			e.Errorf("a ended with %v", err)
		}
		if by := e.signed("third"); by != "b" {
			e.Errorf("%s signed the third object, and a has ended", by)
		}
		if next := b.lock.Term().Token(); next <= first {
			e.Errorf("the token is %d after %d", next, first)
		}
		b.stop()
		if err := <-b.done; err != nil {
			e.Errorf("b ended with %v", err)
		}
	})
}
