package s3object

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// errTorn is a read that shows the ETag of one state and the content of another. With the later
// ETag it would be dangerous: a member that took the content for the present state could replace a
// state that it never saw.
var errTorn = errors.New("the server answered with the ETag of one state of the object and the content of another; read again")

// digests finds such reads where ETags are MD5 sums of the content, as they are on most servers;
// with other ETags it cannot. The answers show which kind the server uses.
type digests struct {
	mu  sync.Mutex
	md5 bool              // sums were seen
	odd map[string]oddity // by key: the last read that did not fit
	not map[string]bool   // keys of objects whose ETags were found not to be sums
}

// oddity is a read whose ETag is not the sum of its content.
type oddity struct {
	version driver.Version
	sum     string
	at      time.Time
}

// steady is how long a server must give the same odd answer before the store believes that its
// ETags are no longer sums, as after a change of the bucket's encryption. A torn read is over in
// milliseconds.
const steady = 200 * time.Millisecond

// learn records an ETag that is the sum of its content.
func (d *digests) learn(key string, v driver.Version, value []byte) (fits bool) {
	if string(v) != digest(value) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.md5 = true
	delete(d.odd, key)
	delete(d.not, key)
	return true
}

// check returns errTorn for a read that does not show a single state, as far as it can tell.
func (d *digests) check(key string, e driver.Entry) error {
	if e.Absent() || len(e.Value) > driver.MaxValue || d.learn(key, e.Version, e.Value) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.md5 || d.not[key] {
		return nil
	}
	last, known := d.odd[key]
	now := time.Now()
	if known && last.version == e.Version && last.sum == digest(e.Value) {
		if now.Sub(last.at) >= steady {
			if d.not == nil || len(d.not) >= maxDoubts {
				d.not = map[string]bool{}
			}
			d.not[key] = true
			return nil
		}
		return errTorn
	}
	if d.odd == nil || len(d.odd) >= maxDoubts {
		d.odd = map[string]oddity{}
	}
	d.odd[key] = oddity{e.Version, digest(e.Value), now}
	return errTorn
}

func digest(value []byte) string {
	sum := md5.Sum(value)
	return hex.EncodeToString(sum[:])
}
