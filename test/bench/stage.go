package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// scene is how many campaign for what, on object storage or Kafka.
type scene struct {
	name      string
	members   int
	elections int
	lease     time.Duration
	ask       asking.Way
	relayed   bool
	kafka     *brokers // nil: object storage
	// With a session a consumer group nominates, and with only nobody else is elected.
	session time.Duration
	only    bool
	// The rest is for object storage.
	peers   bool
	counted bool
	wall    []time.Duration
	url     string // of another server than the bench's, which has the bucket then
	bucket  string
}

// stage hires the members of a scene. They are dismissed by dismiss, whatever happens.
func (b *bench) stage(s scene) (*cast, error) {
	c := &cast{
		b: b, name: s.name, journal: newJournal(), relayed: s.relayed, counted: s.counted, wall: s.wall,
		as:   identity{Objects: true, Peers: s.peers, URL: s.url, Judge: len(s.wall) > 0},
		role: command{Do: start, Bucket: s.bucket, Lease: s.lease, Ask: s.ask, Session: s.session, Only: s.only},
	}
	if err := c.find(s); err != nil {
		return c, err
	}
	for i := range s.elections {
		c.role.Elections = append(c.role.Elections, fmt.Sprintf("%s-%d", s.name, i))
	}
	if s.session > 0 {
		if err := c.part(s.kafka); err != nil {
			return c, err
		}
	}
	return c, c.hire(s.members)
}

// find gives the cast a server, and a bucket or a topic of its own there.
func (c *cast) find(s scene) (err error) {
	switch {
	case s.kafka != nil:
		c.as = identity{Brokers: s.kafka.addresses}
		c.role.Bucket, err = s.kafka.newTopic(c.b.ctx)
	case s.url == "":
		c.as.URL, c.role.Bucket, err = c.b.newObjectBucket()
	}
	return err
}

// newObjectBucket makes a fresh one on object storage, which is started at the first need.
func (b *bench) newObjectBucket() (url, bucket string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.objects == nil {
		if b.objects, err = s3d.Open(b.ctx, s3d.Versity, filepath.Join(b.dir, "objects"), 0); err != nil {
			return "", "", err
		}
	}
	b.buckets++
	bucket = fmt.Sprintf("elections-%d", b.buckets)
	return b.objects.URLs()[0], bucket, b.objects.CreateBucket(b.ctx, bucket)
}

// objectLease is the default, and in a quick run the least that the store allows, with all else in proportion.
func (b *bench) objectLease() time.Duration {
	if b.quick {
		return 2 * time.Second
	}
	return 15 * time.Second
}

// enthrone lets the first member lead all elections and then the others follow, each out of step with each.
func (c *cast) enthrone() (leader *member, err error) {
	leader = c.members[0]
	if err := c.lead(leader); err != nil {
		return nil, err
	}
	if len(c.members) == 1 {
		return leader, nil
	}
	return leader, c.follow(c.members[1:]...)
}

// lead lets a member lead the elections of its role, over which nobody else campaigns yet.
func (c *cast) lead(m *member) error {
	mark := c.journal.mark()
	c.role.Spread = c.role.Lease / 3
	if err := c.join(mark, m); err != nil {
		return err
	}
	return c.awaitAll(mark, m, leads)
}

// follow lets members join over the time between two polls, and waits until their peers are connected.
func (c *cast) follow(who ...*member) error {
	c.role.Spread = c.role.Lease
	if err := c.join(c.journal.mark(), who...); err != nil {
		return err
	}
	c.b.sleep(settle)
	return nil
}

// successors waits until others than those given lead all these elections, and returns how each began.
func (c *cast) successors(mark int, elections []string, of ...*member) ([]entry, error) {
	old, first := map[string]bool{}, map[string]entry{}
	for _, m := range of {
		old[m.id] = true
	}
	for _, name := range elections {
		first[name] = entry{}
	}
	missing := len(first)
	if missing == 0 {
		return nil, nil
	}
	_, err := c.journal.await(c.b.ctx, mark, "the next leaders in "+c.name, func(e entry) bool {
		if began, ok := first[e.Election]; ok && e.What == leads && !old[e.who] && began.At == 0 {
			first[e.Election] = e
			missing--
		}
		return missing == 0
	})
	var all []entry
	for _, e := range first {
		all = append(all, e)
	}
	return all, err
}
