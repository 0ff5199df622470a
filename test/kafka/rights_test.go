package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRights: the list in the package comment is enough, and a missing right is named.
func TestRights(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		founder := c.open(c.direct(as("founder")))
		if _, err := founder.Inspect(within(t), 15*time.Second); err != nil {
			t.Errorf("a user with the right to read cannot: %v", err)
		}
		candidate, observer := c.open(c.direct(as("candidate"))), c.open(c.direct(as("observer")))
		v := create(t, candidate, "key", "first")
		e := read(t, observer, "key")
		if e.Version != v {
			t.Errorf("the observer sees %s", e.Value)
		}
		founders := e.Floor
		if _, err := observer.CompareAndSwap(within(t), "key", v, []byte("x")); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("the observer writes: %v", err)
		}
		if err := observer.CheckRights(within(t), "key"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "grant Write") {
			t.Errorf("the observer asks whether it may write: %v", err)
		}
		if err := candidate.CheckRights(within(t), "key"); err != nil {
			t.Errorf("the candidate asks whether it may write: %v", err)
		}
		if e := read(t, observer, "key"); e.Version != v || e.Floor != founders {
			t.Errorf("asking has changed the log: %+v", e)
		}
		_, err := candidate.Inspect(within(t), 15*time.Second)
		if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "DescribeConfigs") {
			t.Errorf("without the right to look: %v", err)
		}
		swap(t, candidate, "key", v, "second")
	}, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser(plainSASL, "admin", "admin"),
		kfake.User(plainSASL, "founder", "founder", may(kmsg.ACLOperationRead), may(kmsg.ACLOperationWrite),
			may(kmsg.ACLOperationDescribe), may(kmsg.ACLOperationCreate), may(kmsg.ACLOperationDescribeConfigs)),
		kfake.User(plainSASL, "candidate", "candidate", may(kmsg.ACLOperationRead), may(kmsg.ACLOperationWrite),
			may(kmsg.ACLOperationDescribe)),
		kfake.User(plainSASL, "observer", "observer", may(kmsg.ACLOperationRead), may(kmsg.ACLOperationDescribe)))
}
