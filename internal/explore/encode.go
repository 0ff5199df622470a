package main

import (
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"slices"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

// key identifies a state: half of its SHA-256. Two states with one key would be taken for one.
type key [16]byte

// encoder writes a state in a form that is equal for states from which the same can follow. Times
// are ages, and nonces are numbered in the order in which they come.
type encoder struct {
	buf    []byte
	nonces map[string]byte
	now    clock.Instant
	// pushes is the count of the present machine's view. Operations have the count at their start.
	pushes uint64
	viewed bool
}

var (
	instantType = reflect.TypeFor[clock.Instant]()
	configType  = reflect.TypeFor[*protocol.Config]()
)

// silent are fields on which no decision depends, or only by whether two are equal, which the
// states of the messages show.
var silent = map[string]bool{"lastOp": true, "ID": true, "moves": true, "LastUpdated": true, "LeaderID": true}

func (w *world) key() key {
	e := encoder{buf: make([]byte, 0, 2048), nonces: map[string]byte{}}
	e.int(int64(w.model.until - w.now))
	e.value(reflect.ValueOf(w.left))
	e.int(int64(w.elected))
	e.int(int64(w.writes))
	e.int(int64(w.era))
	e.bool(w.restored)
	e.value(reflect.ValueOf(w.cell))
	if w.left.Restores > 0 || w.left.Stale > 0 { // otherwise nothing shows it again
		e.value(reflect.ValueOf(w.before))
	}
	for i := range w.members {
		p := &w.members[i]
		e.now = w.clock(i).Instant
		e.int(int64(p.life))
		if !p.alive {
			e.int(-1)
			continue
		}
		e.int(int64(p.working))
		e.bool(p.stopping)
		e.bool(p.frozen)
		e.bool(p.cut)
		e.bool(p.timed)
		if p.timed {
			e.int(int64(p.wake - e.now.Mono))
		}
		e.viewed = false
		e.value(reflect.ValueOf(p.m).Elem())
	}
	e.net(w)
	var k key
	sum := sha256.Sum256(e.buf)
	copy(k[:], sum[:])
	return k
}

// net writes the messages in an order that does not depend on when they were sent.
func (e *encoder) net(w *world) {
	var all [][]byte
	for i := range w.net {
		m := &w.net[i]
		one := encoder{nonces: e.nonces, now: w.clock(m.from).Instant}
		p := &w.members[m.from]
		one.int(int64(m.from))
		one.int(int64(m.life))
		one.bool(!m.push && p.alive && p.life == m.life && p.m.Current(m.op.ID))
		one.bool(m.answered)
		one.bool(m.held)
		one.bool(m.push)
		one.int(int64(m.outcome))
		one.text(string(m.version))
		one.bool(m.op.Write)
		one.text(string(m.op.Prev))
		one.value(reflect.ValueOf(m.op.Record))
		one.value(reflect.ValueOf(m.cell))
		all = append(all, one.buf)
	}
	slices.SortFunc(all, slices.Compare)
	for _, one := range all {
		e.buf = append(e.buf, one...)
	}
}

func (e *encoder) int(n int64) { e.buf = binary.AppendVarint(e.buf, n) }

func (e *encoder) bool(b bool) {
	n := byte(0)
	if b {
		n = 1
	}
	e.buf = append(e.buf, n)
}

func (e *encoder) text(s string) {
	if len(s) == nonceLength {
		n, ok := e.nonces[s]
		if !ok {
			n = byte(len(e.nonces) + 1)
			e.nonces[s] = n
		}
		e.buf = append(e.buf, 0xff, n)
		return
	}
	e.int(int64(len(s)))
	e.buf = append(e.buf, s...)
}

const nonceLength = 16

// value writes a value of any type, with its unexported fields.
func (e *encoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		e.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.buf = binary.AppendUvarint(e.buf, v.Uint())
	case reflect.String:
		e.text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Type() == configType {
			e.bool(false)
			return
		}
		e.bool(true)
		e.value(v.Elem())
	case reflect.Slice:
		e.int(int64(v.Len()))
		for i := range v.Len() {
			e.value(v.Index(i))
		}
	case reflect.Map:
		e.int(int64(v.Len())) // the model has no metadata
	case reflect.Struct:
		e.fields(v)
	default:
		panic("a state has a field of kind " + v.Kind().String())
	}
}

func (e *encoder) fields(v reflect.Value) {
	t := v.Type()
	if t != instantType {
		zero := v.IsZero()
		e.bool(zero)
		if zero {
			return
		}
	}
	if t == instantType {
		if v.IsZero() {
			e.int(int64(-time.Hour))
			return
		}
		e.int(int64(e.now.Mono) - v.Field(0).Int()) // the clocks of the model agree
		return
	}
	for _, f := range fieldsOf(t) {
		if f.pushes {
			e.count(v.Field(f.number).Uint())
		} else {
			e.value(v.Field(f.number))
		}
	}
}

// count writes a count of pushes as the difference to the first one in the machine.
func (e *encoder) count(pushes uint64) {
	if !e.viewed {
		e.pushes, e.viewed = pushes, true
	}
	e.int(int64(e.pushes - pushes))
}

// field is one field of a type that counts.
type field struct {
	number int
	pushes bool // it counts pushes
}

var fieldLists = map[reflect.Type][]field{}

// fieldsOf lists the fields that count.
func fieldsOf(t reflect.Type) []field {
	list, ok := fieldLists[t]
	if !ok {
		for i := range t.NumField() {
			if name := t.Field(i).Name; !silent[name] {
				list = append(list, field{i, name == "pushes"})
			}
		}
		fieldLists[t] = list
	}
	return list
}
