package agent

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/tenure-go/tenure"
	jsonproblem "github.com/tenure-go/tenure/internal/problem"
)

type problem = jsonproblem.Problem

func refuse(w http.ResponseWriter, p *problem) { p.Answer(w) }

func answer(w http.ResponseWriter, value any) { write(w, http.StatusOK, value) }

func write(w http.ResponseWriter, status int, value any) {
	jsonproblem.Write(w, status, "application/json", value)
}

// mostBody is the limit of a request's body, in bytes.
const mostBody = 16 << 10

// read decodes the body of a request, which must be one JSON object without unknown fields. An
// empty body is an empty object.
func read(w http.ResponseWriter, r *http.Request, value any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	err := d.Decode(value)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the object")
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		return true
	}
	status := http.StatusBadRequest
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		status = http.StatusRequestEntityTooLarge
	}
	refuse(w, &problem{Status: status, Title: "The body cannot be read", Detail: err.Error(),
		Remedy: "send one JSON object with the fields of the interface"})
	return false
}

// millis is a duration in whole milliseconds, rounded down.
type millis int64

func millisOf(d time.Duration) millis { return millis(max(0, d).Milliseconds()) }

// duration returns the longest duration for a number that is too large, which would otherwise wrap
// round into one that is valid.
func (m millis) duration() time.Duration {
	const most = millis(math.MaxInt64 / int64(time.Millisecond))
	return time.Duration(min(max(m, -most), most)) * time.Millisecond
}

// standing is the common part of the answers about a campaign.
type standing struct {
	// Number is that of the last heartbeat that counted.
	Number uint64 `json:"number"`
	// Token is that of the open term, or 0 if the client does not lead.
	Token uint64 `json:"token,omitempty"`
	// RemainingMillis is how long the client may act, counted from before it sent the question.
	RemainingMillis millis `json:"remainingMillis"`
	// Finish: the client is asked to begin nothing more, to finish, and to report that.
	Finish bool `json:"finish,omitempty"`
}

func (s state) standing() standing {
	return standing{Number: s.number, Token: s.token, RemainingMillis: millisOf(s.remaining), Finish: s.finish}
}

// overProblem tells the client that its campaign is over.
func overProblem(why error) *problem {
	return &problem{Status: http.StatusGone, Title: "The campaign is over", Detail: why.Error(),
		Remedy: "stop the work, and begin another campaign"}
}

func configProblem(err error) *problem {
	p := &problem{Status: http.StatusUnprocessableEntity, Title: "The election cannot be held so", Detail: err.Error(),
		Remedy: "change the fields or the name that the errors list"}
	if c := (*tenure.ConfigError)(nil); errors.As(err, &c) {
		for i := range c.Fields {
			p.Errors = append(p.Errors, c.Fields[i].Error())
		}
	}
	return p
}

// busyProblem is for a campaign that cannot begin now.
func busyProblem(err error) *problem {
	p := &problem{Status: http.StatusServiceUnavailable, Title: "The campaign cannot begin", Detail: err.Error(),
		Remedy: "try again later"}
	switch {
	case errors.Is(err, errFull):
		p.Remedy = "end other campaigns, or raise the limit of the agent: --max-campaigns"
	case errors.Is(err, errTaken):
		p.Status, p.Remedy = http.StatusConflict, "give each client an id of its own, or leave the id out"
	}
	return p
}
