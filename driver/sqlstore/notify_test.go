package sqlstore

import (
	"database/sql"
	"encoding/base64"
	"strings"
	"testing"
)

func TestParseNotification(t *testing.T) {
	value := []byte(`{"a": "record"}`)
	stamp := newStamp("billing", value)
	good := []string{"billing", stamp, "42", "7/1/9", base64.StdEncoding.EncodeToString(value)}
	key, e, err := ParseNotification(strings.Join(good, "\n"))
	if err != nil || key != "billing" || string(e.Value) != string(value) || e.Floor != 42 || !e.Unverified {
		t.Errorf("got %q, %+v, %v", key, e, err)
	}
	r := written(stamp, string(value), "7/1/9", "7/1/9")
	if read := r.entry("billing"); read.Version != e.Version || read.Era != e.Era {
		t.Errorf("pushed is %+v, read is %+v", e, read)
	}
	for field, bad := range map[int][]string{
		0: {"another", ""}, 1: {"", "x", newStamp("billing", nil)}, 2: {"", "-1", "x"}, 4: {"", "?", "bm90"},
	} {
		for _, text := range bad {
			fields := append([]string{}, good...)
			fields[field] = text
			if key, e, err := ParseNotification(strings.Join(fields, "\n")); err == nil || key != fields[0] {
				t.Errorf("field %d is %q: got %q, %+v", field, text, key, e)
			}
		}
	}
	for n := range good {
		if _, _, err := ParseNotification(strings.Join(good[:n], "\n")); err == nil {
			t.Errorf("%d fields are enough", n)
		}
	}
}

func TestOnlyPostgresNotifies(t *testing.T) {
	for _, dialect := range []Dialect{MySQL(), SQLite()} {
		if _, err := New(&sql.DB{}, dialect, WithNotifications()); err == nil || !strings.Contains(err.Error(), "has no notifications") {
			t.Errorf("%s: got %v", dialect.name, err)
		}
	}
}
