package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// A timeline has the inputs of one member on the way to a fault, in the words of
// internal/protocol/testdata. There `go test ./internal/protocol -run Timelines -update` adds the
// answers of a machine without the fault.

// timelines writes the inputs of each life of each member.
func (mo *model) timelines(out io.Writer, title string, trace []move) {
	for i := range mo.cfgs {
		l := &life{member: i}
		w := mo.first()
		l.begin(out, title, w)
		for _, v := range trace {
			if words := l.input(w, v); words != "" {
				l.write(out, w, words)
			}
			w = w.after(v)
			if v.kind == restart && int(v.of) == i {
				l.begin(out, title, w)
			}
			l.note(w)
		}
		if p := &w.members[i]; p.alive && p.m.Holds(w.clock(i)) {
			l.write(out, w, "may-act")
		}
	}
}

// life is one life of a member, which its timeline calls a, with the incarnation a1.
type life struct {
	member, number int
	told           time.Duration     // when it got its latest input, by its clock
	own            map[string]string // its nonces, as n1, n2, ...
}

// begin writes the title, the settings and the first input.
func (l *life) begin(out io.Writer, title string, w *world) {
	cfg := w.model.cfgs[l.member]
	l.number, l.own, l.told = w.members[l.member].life, map[string]string{}, w.clock(l.member).Mono
	fmt.Fprintf(out, "\n== %s: %c%d\n", title, 'a'+l.member, l.number)
	fmt.Fprintf(out, "config lease=%v renew=%v budget=%v finish=%v poll=%v stable=%v retry=%v drift=%d\n",
		cfg.Lease, cfg.Renew, cfg.Budget, cfg.FinishWithin, cfg.Poll, cfg.PollStable, cfg.Retry[0], cfg.Drift)
	if w.model.watch {
		fmt.Fprintln(out, "watching on")
	}
	fmt.Fprintln(out, "campaign")
}

func (l *life) write(out io.Writer, w *world, words string) {
	now := w.clock(l.member).Mono
	if d := now - l.told; d > 0 {
		words = fmt.Sprintf("+%v %s", d, words)
	}
	l.told = now
	fmt.Fprintln(out, words)
}

// input returns the words for a move that the member notices, or "".
func (l *life) input(w *world, v move) string {
	switch v.kind {
	case ring, finish:
		if int(v.of) == l.member {
			return map[kind]string{ring: "tick", finish: "finish again"}[v.kind]
		}
	case answer, fail:
		m := &w.net[v.of]
		if m.from != l.member || m.life != l.number {
			return ""
		}
		if v.kind == fail {
			return "unknown"
		}
		return l.answer(m)
	}
	return ""
}

// note names the nonces of the writes that the member has sent.
func (l *life) note(w *world) {
	for i := range w.net {
		m := &w.net[i]
		if nonce := m.op.Record.Nonce; m.from == l.member && m.life == l.number && m.op.Write && l.own[nonce] == "" {
			l.own[nonce] = fmt.Sprintf("n%d", len(l.own)+1)
		}
	}
}

func (l *life) answer(m *message) string {
	switch {
	case m.push:
		return "push " + l.cell(&m.cell)
	case !m.op.Write:
		return "read " + l.cell(&m.cell)
	case m.outcome == protocol.Conflict:
		return "conflict"
	}
	return "wrote v" + string(m.version)
}

// cell returns the words for a cell.
func (l *life) cell(c *protocol.Cell) string {
	words := []string{"v" + string(c.Version)}
	r := &c.Record
	switch {
	case c.Pristine:
		words = []string{"pristine"}
	case c.Kind == protocol.Absent:
		words = []string{"absent"}
	case c.Kind == protocol.Malformed:
		words = append(words, "malformed", fmt.Sprintf("term=%d lease=%v nonce=x%s", r.Term, r.Lease, r.Nonce))
	case l.own[r.Nonce] != "":
		words = append(words, l.own[r.Nonce])
	default:
		words = append(words, l.record(r))
	}
	if q := r.Request; q != nil {
		words = append(words, "request="+cmp.Or(l.named(q.To), "anybody"))
	}
	if c.Unproven {
		words = append(words, "unproven")
	}
	return strings.Join(append(words, fmt.Sprintf("floor=%d era=%d", c.Floor, c.Era)), " ")
}

// record returns the words for a record that another life wrote.
func (l *life) record(r *record.Record) string {
	words := fmt.Sprintf("term=%d seq=%d nonce=x%s lease=%v drift=%d", r.Term, r.Seq, r.Nonce, r.Lease, r.Drift)
	if r.LeaderID != "" {
		words = fmt.Sprintf("holder=%s incarnation=%s ", l.named(r.LeaderID), l.incarnation(r.Incarnation)) + words
	}
	if r.Released {
		words += " released"
	}
	if r.Successor != "" {
		words += " successor=" + l.named(r.Successor)
	}
	return words
}

// named exchanges the member's name with a.
func (l *life) named(id string) string {
	switch self := string(rune('a' + l.member)); id {
	case self:
		return "a"
	case "a":
		return self
	}
	return id
}

// incarnation returns the name of a life. Earlier lives of the member have numbers below 1.
func (l *life) incarnation(name string) string {
	id := l.named(name[:1])
	life, _ := strconv.Atoi(name[1:])
	if id == "a" {
		life += 1 - l.number
	}
	return id + strconv.Itoa(life)
}
