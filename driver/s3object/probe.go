package s3object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
)

// probePrefix begins the names of a store's own objects: those of inspections, and the one on which
// it checks conditions.
const probePrefix = ".tenure-probe-"

func probeKey() string { return probePrefix + strings.ToLower(rand.Text()) }

// Texts that inspections and the checks before the first write share.
const (
	overwrites = "an object is overwritten under the condition that it does not exist: two candidates can both begin an election"
	replaces   = "the server replaces an object although If-Match names another version: an old leader overwrites the record " +
		"of the new one"

	anotherServer = "use a server, or a release of it, that keeps conditional writes, such as S3, MinIO or versitygw"
	notVersioned  = "; some only do so in buckets without versions"
)

// probe is one inspection.
type probe struct {
	s     *Store
	lease time.Duration
	races int
	pause time.Duration // before a repetition
	found []driver.Finding

	first   string         // the object that is written to one at a time
	version driver.Version // that it has
	old     driver.Version // that it had before
	bare    bool           // the form in which the server understands swaps
	creates bool           // create-only writes are refused where they should be
	swaps   bool           // likewise swaps
	stale   bool           // a read was seen to be late

	mu   sync.Mutex
	made []string
}

func newProbe(s *Store, lease time.Duration) *probe {
	p := &probe{s: s, lease: lease, races: races, pause: pause, bare: s.form.isBare(), creates: true, swaps: true}
	p.first = p.name()
	return p
}

func (p *probe) find(severity driver.Severity, setting, problem, remedy string) {
	p.found = append(p.found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
}

// name draws the name of an object that is removed in the end.
func (p *probe) name() string {
	key := probeKey()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, key)
	return key
}

// tries and pause are for services that take one write a second for each object.
const (
	tries = 5
	pause = 1100 * time.Millisecond
)

// write is one write without a race. It is repeated only after an answer that shows that the server
// has not looked at it.
func (p *probe) write(ctx context.Context, key string, c condition, text string) (v driver.Version, refused bool, err error) {
	for range tries {
		v, err = p.s.put(ctx, key, c, []byte(text))
		if err == nil || !look(err).busy() {
			break
		}
		if err := wait(ctx, p.pause); err != nil {
			return "", false, err
		}
	}
	switch {
	case err == nil:
		return v, false, nil
	case look(err).conflict():
		return "", true, nil
	}
	return "", false, p.s.explain(writing, err)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cleaning is how long the removal may take after the inspection's context has ended.
const cleaning = time.Second

// clean removes the objects of the inspection, as far as it may.
func (p *probe) clean(ctx context.Context) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleaning)
		defer cancel()
	}
	errs := make([]error, len(p.made))
	lanes(len(p.made), contenders, func(i int) { errs[i] = p.s.remove(ctx, p.made[i]) })
	stayed := 0
	for _, err := range errs {
		if err != nil {
			stayed++
		}
	}
	if stayed == 0 {
		return
	}
	p.find(driver.Advice, "s3:DeleteObject", fmt.Sprintf("%d objects of this inspection could not be removed: %v", stayed,
		errors.Join(errs...)), fmt.Sprintf(`grant the right for %s%s*, or remove them: aws s3 rm s3://%s/%s --recursive `+
		`--exclude "*" --include "*%s*"`, p.s.prefix, probePrefix, p.s.bucket, p.s.prefix, probePrefix))
}

func (s *Store) remove(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)}, once)
	return err
}

// lanes calls do for 0 to n-1, at most width at a time, and waits for all.
func lanes(n, width int, do func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, width)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	all.Wait()
}
