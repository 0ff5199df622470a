package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
)

// process is one that acts. All times are nanoseconds of CLOCK_MONOTONIC.
type process struct {
	candidate uint32
	pid, root uint32
	token     uint64
}

// act is one act, or the end of a process.
type act struct {
	process
	at    int64
	place int64 // in the journal
}

// claim is a claim of a token that a store has confirmed.
type claim struct {
	token          uint64
	candidate      string
	sent, answered int64
}

// history is what happened in one election.
type history struct {
	asks, jobs bool

	acts     []act
	late     []act // after the end of their process
	claims   []claim
	releases map[uint64]int64 // when they were first sent, by token
}

// The kinds of records of a journal.
const (
	began = 1
	acted = 2
	asked = 3
	ended = 4
)

const recordSize = 32

func (h *history) readJournal(text []byte) error {
	if len(text)%recordSize != 0 {
		return fmt.Errorf("the length of %d bytes is no multiple of %d", len(text), recordSize)
	}
	over := map[process]bool{}
	for place := int64(0); len(text) > 0; place, text = place+1, text[recordSize:] {
		a := act{at: int64(binary.LittleEndian.Uint64(text)), place: place, process: process{
			token: binary.LittleEndian.Uint64(text[8:]), candidate: binary.LittleEndian.Uint32(text[16:]),
			pid: binary.LittleEndian.Uint32(text[24:]), root: binary.LittleEndian.Uint32(text[28:]),
		}}
		switch what := binary.LittleEndian.Uint32(text[20:]); what {
		case began, asked:
		case acted:
			h.acts = append(h.acts, a)
			if over[a.process] {
				h.late = append(h.late, a)
			}
		case ended:
			over[a.process] = true
		default:
			return fmt.Errorf("record %d is of the unknown kind %d", place, what)
		}
	}
	return nil
}

// traced is the part of a line of a trace that matters here.
type traced struct {
	In       string   `json:"in"`
	By       string   `json:"by"`
	At       [3]int64 `json:"at"`
	Op       uint64   `json:"op"`
	Outcome  string   `json:"outcome"`
	Settings *struct {
		ID string `json:"id"`
	} `json:"settings"`
	Send *struct {
		Op     uint64 `json:"op"`
		Record *struct {
			Leader   string `json:"leaderID"`
			Term     uint64 `json:"term"`
			Seq      uint64 `json:"seq"`
			Released bool   `json:"released"`
		} `json:"record"`
	} `json:"send"`
}

// readTrace notes the claims that a store has confirmed, and the releases that were sent. It drops
// a last line that is not whole: its process was killed.
func (h *history) readTrace(text []byte) error {
	if h.releases == nil {
		h.releases = map[uint64]int64{}
	}
	names, sent := map[string]string{}, map[string]claim{}
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return nil
		}
		text = rest
		var l traced
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if l.Settings != nil {
			names[l.By] = l.Settings.ID
		}
		switch {
		case l.In == "written" && l.Outcome == "applied":
			if c, ok := sent[key(l.By, l.Op)]; ok {
				c.answered = l.At[0]
				h.claims = append(h.claims, c)
			}
		case l.In != "next" || l.Send == nil || l.Send.Record == nil:
		case l.Send.Record.Released:
			if at, ok := h.releases[l.Send.Record.Term]; !ok || l.At[0] < at {
				h.releases[l.Send.Record.Term] = l.At[0]
			}
		case l.Send.Record.Leader != "" && l.Send.Record.Seq == 1:
			sent[key(l.By, l.Send.Op)] = claim{token: l.Send.Record.Term, candidate: names[l.By], sent: l.At[0]}
		}
	}
}

func key(by string, op uint64) string { return by + " " + strconv.FormatUint(op, 10) }
