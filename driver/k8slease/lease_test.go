package k8slease

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

var (
	now  = time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	held = record{LeaderID: "node-1", LastUpdated: now, Term: 7, LeaseMillis: 1500, Incarnation: "c0ffee", Seq: 3, Nonce: "n1"}
)

func text(t *testing.T, r record) []byte {
	t.Helper()
	value, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// stored returns a Lease as the server keeps and sends it.
func stored(t *testing.T, l *lease) *lease {
	t.Helper()
	body, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	o["metadata"].(map[string]any)["uid"] = "u"
	o["metadata"].(map[string]any)["resourceVersion"] = "8"
	body, _ = json.Marshal(o)
	got := new(lease)
	if err := json.Unmarshal(body, got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestValuesSurvive(t *testing.T) {
	for name, value := range map[string][]byte{
		"a record": text(t, held), "not UTF-8": {0xff, 0, 1}, "like an encoded value": []byte("base64:x"),
		"control characters": []byte("\x00\x01\n\u2028<&>"), "large": []byte(strings.Repeat("x", driver.MaxValue)),
	} {
		l := stored(t, (&lease{name: "a"}).with("a", value, now))
		if got := l.value(); string(got) != string(value) {
			t.Errorf("%s: %q became %q", name, value, got)
		}
	}
}

// TestSpec: electors that know only the spec see the same as members.
func TestSpec(t *testing.T) {
	again, released, vacancy, other := held, held, record{LeaseMillis: 2000, Nonce: "n9", Term: 6}, held
	again.LastUpdated, again.Nonce = now.Add(time.Second), "n2"
	soon, back := again, again
	soon.LastUpdated, soon.Nonce = again.LastUpdated.Add(200*time.Millisecond), "n3"
	back.LastUpdated, back.Nonce = now.Add(-time.Hour), "n4"
	whole := now.Truncate(time.Second)
	released.Released, released.LastUpdated = true, time.Time{}
	other.LeaderID, other.Incarnation, other.LastUpdated = "node-2", "beef", now.Add(2*time.Second)
	l := &lease{name: "a"}
	for _, step := range []struct {
		what                 string
		value                []byte
		holder               string
		seconds, transitions int32
		renewed, acquired    time.Time
	}{
		{"a vacant record, which other electors must not take", text(t, vacancy), "vacant_n9", 2, 0, now, time.Time{}},
		{"a claim", text(t, held), "node-1_c0ffee", 2, 1, now, now},
		{"a renewal", text(t, again), "node-1_c0ffee", 2, 1, again.LastUpdated, now},
		{"a request, which is no renewal", append(text(t, again), ' '), "node-1_c0ffee", 2, 1, again.LastUpdated, now},
		{"a renewal in the same second", text(t, soon), "node-1_c0ffee", 2, 1, whole.Add(2 * time.Second), now},
		{"a request after it", append(text(t, soon), ' '), "node-1_c0ffee", 2, 1, whole.Add(2 * time.Second), now},
		{"a renewal after the clock was set back", text(t, back), "node-1_c0ffee", 2, 1, whole.Add(3 * time.Second), now},
		{"a release, which other electors may take at once", text(t, released), "", 1, 1, now, now},
		{"another leader", text(t, other), "node-2_beef", 2, 2, other.LastUpdated, other.LastUpdated},
		{"bytes that are no record", []byte("x"), "unreadable_", 3600, 2, now, time.Time{}},
	} {
		l = stored(t, l.with("a", step.value, now))
		want := spec{
			Holder: step.holder, Seconds: step.seconds, Transitions: step.transitions, Renewed: micro(step.renewed), Acquired: micro(step.acquired),
		}
		if l.spec != want {
			t.Errorf("%s: the spec is %+v; want %+v", step.what, l.spec, want)
		}
	}
}

// TestForeign: if the hash does not fit, the spec alone counts.
func TestForeign(t *testing.T) {
	released := held
	released.Released = true
	ours := func(r record) *lease { return stored(t, (&lease{name: "a"}).with("a", text(t, r), now)) }
	change := func(l *lease, do func(*spec)) *lease { do(&l.spec); return l }
	bare := func(s spec) *lease { return &lease{name: "a", uid: "u", revision: 9, spec: s} }
	for _, c := range []struct {
		what string
		l    *lease
		want string // the state, and the lease in milliseconds
	}{
		{"our record", ours(held), "node-1 1500"},
		{"another elector", bare(spec{Holder: "pod-a", Seconds: 15, Renewed: micro(now)}), "pod-a 15000"},
		{"another elector after our leader", change(ours(held), func(s *spec) { s.Holder = "pod-a" }), "pod-a 2000"},
		{"our leader has the longer lease", change(ours(held), func(s *spec) { s.Holder, s.Seconds = "pod-a", 1 }), "pod-a 1500"},
		{"no duration", bare(spec{Holder: "pod-a"}), "pod-a 1"},
		{"a release of another elector", bare(spec{Seconds: 1, Renewed: micro(now)}), "released"},
		{"such a release after our release", change(ours(released), func(s *spec) { s.Renewed = micro(now.Add(1)); s.Transitions = 9 }), "released"},
		{"the holder was removed by hand", change(ours(held), func(s *spec) { s.Holder = "" }), "vacant 2000"},
		{"also with a duration of 1 s", change(ours(held), func(s *spec) { s.Holder, s.Seconds = "", 1 }), "vacant 1500"},
		{"also of another elector", bare(spec{Seconds: 15, Renewed: micro(now)}), "vacant 15000"},
		{"a spec that was emptied after our release", change(ours(released), func(s *spec) { *s = spec{} }), "vacant 1"},
		{"a Lease that was never held", bare(spec{}), "absent"},
		{"longer than any lease", bare(spec{Holder: "pod-a", Seconds: 3601}), "foreign"},
	} {
		if got := describe(c.l.value()); got != c.want {
			t.Errorf("%s: it is read as %s; want %s", c.what, got, c.want)
		}
	}
}

func describe(value []byte) string {
	r, ok := parse(value)
	switch {
	case len(value) == 0:
		return "absent"
	case !ok:
		return "foreign"
	case r.Released:
		return "released"
	case r.LeaderID == "":
		return fmt.Sprint("vacant ", r.LeaseMillis)
	}
	return fmt.Sprint(r.LeaderID, " ", r.LeaseMillis)
}

// TestForeignRenewal: each renewal of another elector is a new record, and a changed label is not.
func TestForeignRenewal(t *testing.T) {
	l := &lease{name: "a", spec: spec{Holder: "pod-a", Seconds: 15, Renewed: micro(now)}}
	before, _ := parse(l.value())
	l.revision++
	same, _ := parse(l.value())
	l.spec.Renewed = micro(now.Add(time.Second))
	after, _ := parse(l.value())
	if before.Nonce != same.Nonce || before.Nonce == after.Nonce || before.Incarnation != after.Incarnation {
		t.Errorf("the records are %+v, %+v and %+v", before, same, after)
	}
}

// TestEditedRecord: a record that is not as it was written with this spec does not count.
func TestEditedRecord(t *testing.T) {
	l := stored(t, (&lease{name: "a"}).with("a", text(t, held), now))
	l.annotations[recordAnnotation] = strings.Replace(l.annotations[recordAnnotation], `"term":7`, `"term":70000`, 1)
	if r, _ := parse(l.value()); r.Term != 0 || !isForeign(l.value()) {
		t.Errorf("the edited record counts: %+v", r)
	}
}

// TestMetadataSurvives: labels, owners and annotations of others are in each write.
func TestMetadataSurvives(t *testing.T) {
	l := new(lease)
	err := json.Unmarshal([]byte(`{"metadata":{"name":"a","uid":"u","resourceVersion":"5","labels":{"app":"x"},
		"ownerReferences":[{"kind":"Pod","name":"p"}],"annotations":{"of":"others"},"managedFields":[{}]}}`), l)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(l.with("a", text(t, held), now))
	for _, want := range []string{`"labels":{"app":"x"}`, `"kind":"Pod"`, `"of":"others"`, `"uid":"u"`, `"resourceVersion":"5"`} {
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s is not in %s, %v", want, body, err)
		}
	}
	if strings.Contains(string(body), "managedFields") {
		t.Errorf("the fields of the server are in %s", body)
	}
}

// TestHistory: an answer below what was known when its request was sent begins another history.
func TestHistory(t *testing.T) {
	at := func(revision uint64) *lease { return &lease{name: "a", uid: "u", revision: revision} }
	var h history
	read := func(l *lease) (uint64, bool) {
		e, restored, err := h.read(h.before("a"), l)
		if err != nil {
			t.Fatal(err)
		}
		return e.Era, restored
	}
	first, _ := read(at(100))
	late := h.before("a")
	if e, restored := read(at(120)); e != first || restored {
		t.Errorf("a later state began another history")
	}
	if e, restored, err := h.read(late, at(110)); err != nil || restored || e.Era != first {
		t.Errorf("an answer that was overtaken began another history: %v", err)
	}
	late = h.before("a")
	second, restored := read(at(119))
	if !restored || second == first {
		t.Errorf("an older state of the Lease began no other history")
	}
	if _, _, err := h.read(late, at(125)); err == nil {
		t.Error("an answer to a request from the former history counts")
	}
	if _, ok := h.pushed(0, at(126)); ok {
		t.Error("a push of the former history counts")
	}
	if _, err := h.absent(0, "a", 126); err == nil {
		t.Error("an absence of the former history counts")
	}
	if _, restored, _ := h.counted(h.before(""), 118); !restored {
		t.Error("a list below a known state began no other history")
	}
	_, _, _ = h.counted(h.before(""), 200)
	if restored, err := h.wrote(h.before("a"), at(200)); !restored || err == nil {
		t.Errorf("a write that does not raise the revision counts: %v", err)
	}
}

// TestFloor: the floor rises with each write, and after a restore with the time.
func TestFloor(t *testing.T) {
	var h history
	floor := func(date int64, revision uint64) uint64 {
		h.noteDate(time.Unix(date, 0))
		e, _, err := h.read(h.before("a"), &lease{name: "a", uid: "u", revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		return e.Floor
	}
	var last uint64
	for _, step := range []struct {
		why      string
		date     int64
		revision uint64
	}{
		{"the first state", 1000, 500}, {"a write in the same second", 1000, 501}, {"a server whose clock is behind", 990, 502},
		{"a restored etcd", 1001, 100}, {"a clock that is not credible", 253402300799, 101}, {"the right time again", 1002, 102},
	} {
		if now := floor(step.date, step.revision); now <= last {
			t.Errorf("%s: the floor is %d after %d", step.why, now, last)
		} else {
			last = now
		}
		if last > 1003_000_000 {
			t.Errorf("%s: the floor is %d", step.why, last)
		}
	}
	other := &lease{name: "a", uid: "u", revision: 103, annotations: map[string]string{
		recordAnnotation: `{"leaderID":"a","term":2000000000,"leaseMillis":1000,"nonce":"n"}`,
	}, spec: spec{Holder: "pod-a", Seconds: 15, Renewed: micro(now)}}
	if e, _, err := h.read(h.before("a"), other); err != nil || e.Floor != 2_000_000_000 {
		t.Errorf("after another elector the floor is %d, %v; the last term was 2000000000", e.Floor, err)
	}
}

func TestKeys(t *testing.T) {
	for key, ok := range map[string]bool{
		"billing": true, "a.b-c.d0": true, strings.Repeat("a", 253): true, "crawl/slots/1": true, "a.b/jobs/c": true,
		"": false, "Billing": false, "/a": false, "a/": false, "a//b": false, "a/.b": false, "a/-b": false, "-a": false, "a-": false, "a..b": false, "a_b": false, "a.-b": false,
		strings.Repeat("a", 254): false,
	} {
		if err := new(Store).CheckKey(key); (err == nil) != ok {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// TestOwner: a Lease holds the key in its annotation, or that of its name, and no other.
func TestOwner(t *testing.T) {
	for _, c := range []struct {
		what           string
		annotated      string // "-": no annotation
		watched        string
		holds, refuses string
	}{
		{what: "a plain key", annotated: "-", watched: "a.jobs.b", holds: "a.jobs.b", refuses: "a/jobs/b"},
		{what: "a key with slashes", annotated: "a/jobs/b", watched: "a/jobs/b", holds: "a/jobs/b", refuses: "a.jobs.b"},
		{what: "other slashes", annotated: "a/jobs.b", watched: "a/jobs.b", holds: "a/jobs.b", refuses: "a/jobs/b"},
		{what: "an annotation that does not fit", annotated: "billing", watched: "a.jobs.b", refuses: "a.jobs.b"},
		{what: "an empty one", annotated: "", watched: "a.jobs.b", refuses: "a.jobs.b"},
	} {
		l := &lease{name: "a.jobs.b", annotations: map[string]string{keyAnnotation: c.annotated}}
		if c.annotated == "-" {
			l.annotations = nil
		}
		if l.key() != c.watched || l.refuses(c.refuses) == nil || c.holds != "" && l.refuses(c.holds) != nil {
			t.Errorf("%s: it is pushed to %s, refuses %s: %v, and %s: %v", c.what, l.key(), c.refuses, l.refuses(c.refuses), c.holds, l.refuses(c.holds))
		}
	}
}

// TestLostKey: a Lease that lacks its key after a write is not as it was written.
func TestLostKey(t *testing.T) {
	to := stored(t, (&lease{name: "a.jobs.b"}).with("a/jobs/b", text(t, held), now))
	if to.owner() != "a/jobs/b" || !to.same(to) {
		t.Errorf("the Lease holds %s", to.owner())
	}
	without := stored(t, (&lease{name: "a.jobs.b"}).with("a.jobs.b", text(t, held), now))
	if without.same(to) {
		t.Error("a webhook that removes the key is not noticed")
	}
}
