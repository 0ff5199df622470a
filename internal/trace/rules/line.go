package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// line is the part of a line of a trace on which rules depend. docs/trace.md describes the format.
type line struct {
	In       string           `json:"in"`
	By       string           `json:"by"`
	At       [3]time.Duration `json:"at"` // monotonic, raw and boot clock
	Wall     time.Time        `json:"wall"`
	Election string           `json:"election"`
	Settings *settings        `json:"settings"`
	Op       uint64           `json:"op"`
	Outcome  string           `json:"outcome"`
	Version  string           `json:"version"`
	Cell     *cell            `json:"cell"`
	Term     uint64           `json:"term"`
	Left     time.Duration    `json:"left"`
	Send     *op              `json:"send"`
	Changes  []change         `json:"changes"`

	number int
}

type settings struct {
	Lease  time.Duration `json:"lease"`
	Budget time.Duration `json:"budget"` // the lease minus the margin
	// Hearsay says that other members send the pushes, so that any of them may be wrong.
	Hearsay bool `json:"hearsay"`
}

type cell struct {
	Kind       string `json:"kind"`
	Version    string `json:"version"`
	Unverified bool   `json:"unverified"`
	Record     record `json:"record"`
}

type record struct {
	LeaderID    string        `json:"leaderID"`
	Term        uint64        `json:"term"`
	Lease       time.Duration `json:"lease"`
	Incarnation string        `json:"incarnation"`
	Seq         uint64        `json:"seq"`
	Nonce       string        `json:"nonce"`
	Released    bool          `json:"released"`
}

func (r *record) held() bool { return r.LeaderID != "" && !r.Released }

type op struct {
	ID      uint64        `json:"op"`
	Timeout time.Duration `json:"timeout"`
	Prev    string        `json:"prev"`
	Record  *record       `json:"record"` // nil: a read
}

type change struct {
	What string `json:"what"`
	Term uint64 `json:"term"`
}

// leaderSince returns the most time that can have passed since an earlier reading (L5).
func leaderSince(now, then [3]time.Duration) time.Duration {
	asleep := (now[2] - then[2]) - (now[0] - then[0])
	return max(now[0]-then[0], now[1]-then[1]) + max(asleep, 0)
}

// followerSince returns the least time that can have passed since an earlier reading (L5).
func followerSince(now, then [3]time.Duration) time.Duration {
	return min(now[0]-then[0], now[1]-then[1])
}

func parse(text []byte) ([]line, error) {
	var lines []line
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			break // the process ended while it wrote
		}
		l := line{number: len(lines) + 1}
		if err := json.Unmarshal(text[:end], &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.number, err)
		}
		lines, text = append(lines, l), text[end+1:]
	}
	return lines, nil
}
