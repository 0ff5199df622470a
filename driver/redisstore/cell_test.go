package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

func TestEntry(t *testing.T) {
	stamp := seal.New("k", []byte("v"))
	for _, c := range []struct {
		why    string
		answer []string
		want   driver.Entry
	}{
		{
			"as it was written", []string{"e", "5", "1", stamp, "v", "7", "e"},
			driver.Entry{Value: []byte("v"), Version: driver.Version(stamp + " e"), Floor: 7, Ceiling: latest, Era: era("e")},
		},
		{
			"written in another era", []string{"f", "8", "1", stamp, "v", "7", "e"},
			driver.Entry{Value: []byte("v"), Version: driver.Version(stamp + " f"), Floor: 8, Ceiling: latest, Era: era("f"), Unproven: true},
		},
		{
			"edited by hand", []string{"e", "5", "1", stamp, "w", "7", "e"},
			driver.Entry{Value: []byte("w"), Version: driver.Version(stamp + " e"), Floor: 7, Ceiling: latest, Era: era("e"), Unproven: true},
		},
		{"absent", []string{"e", "5", "0", "", "", "", ""}, driver.Entry{Floor: 5, Ceiling: latest, Era: era("e")}},
	} {
		got, err := parseCell(c.answer)
		if err != nil {
			t.Fatal(err)
		}
		e := got.entry("k")
		if string(e.Value) != string(c.want.Value) || e.Version != c.want.Version || e.Floor != c.want.Floor || e.Ceiling != c.want.Ceiling ||
			e.Era != c.want.Era || e.Unproven != c.want.Unproven || e.Pristine {
			t.Errorf("%s: got %+v, want %+v", c.why, e, c.want)
		}
	}
	for why, answer := range map[string][]string{
		"no version": {"e", "5", "1", "", "v", "", ""}, "no value": {"e", "5", "1", stamp, "", "", "e"},
	} {
		if _, err := parseCell(answer); !errors.Is(err, errForeign) {
			t.Errorf("a hash with %s: got %v", why, err)
		}
	}
	if _, err := parseCell([]string{"e"}); err == nil {
		t.Error("a short answer is taken")
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		why                string
		floor, clock, want uint64
	}{
		{"the clock went on", 5, 9, 9},
		{"the clock went back", 9, 5, 9},
		{"a clock that is centuries ahead", 9, latest, 9},
		{"a floor of a clock that was centuries ahead", latest, 5, latest},
		{"a floor that was set by hand", highest, 5, 5},
		{"neither is credible", highest, latest, highest},
		{"an absent cell, and a clock that is centuries ahead", 0, latest, latest},
	} {
		if got := (cell{floor: c.floor, clock: c.clock}).bound(); got != c.want {
			t.Errorf("%s: got %d, want %d", c.why, got, c.want)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []version{{"stamp", "era"}, {"with a space", "era"}} {
		if got := parseVersion(v.version()); got != v {
			t.Errorf("got %+v of %+v", got, v)
		}
	}
	if got := parseVersion(""); got != (version{}) {
		t.Errorf("got %+v of an absence", got)
	}
}

func TestParseNews(t *testing.T) {
	stamp := seal.New("k", []byte("a\nb"))
	key, e, err := parseNews("k\n" + stamp + "\n7\nera\na\nb")
	if key != "k" || err != nil || string(e.Value) != "a\nb" || e.Version != driver.Version(stamp+" era") || e.Floor != 7 || e.Era != era("era") || !e.Unverified {
		t.Errorf("got %q, %+v, %v", key, e, err)
	}
	big := strings.Repeat("x", driver.MaxValue+1)
	for _, message := range []string{
		"k", "k\n" + stamp + "\n7\nera", "k\n" + stamp + "\n-7\nera\na\nb", "k\n" + stamp + "\n7\n\na\nb", "k\n" + stamp + "\n7\nera\nb",
		"k\n" + seal.New("k", []byte(big)) + "\n7\nera\n" + big,
	} {
		if key, e, err := parseNews(message); key != "k" || err == nil || e.Version != "" {
			t.Errorf("%.60q: got %q, %+v, %v", message, key, e, err)
		}
	}
}

func TestInfo(t *testing.T) {
	if got := parseInfo("txt:# Server\r\nrole:master\r\nslave0:ip=a,port=1\r\n"); got["role"] != "master" || got["slave0"] != "ip=a,port=1" {
		t.Errorf("got %v", got)
	}
}
