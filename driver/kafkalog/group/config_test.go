package group

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	c, err := Config{}.settle()
	if err != nil || c.Topic != c.Name+".neli" || c.SessionTimeout != 15*time.Second || c.Heartbeat != 3*time.Second {
		t.Errorf("the defaults are %+v, %v", c, err)
	}
	bad := Config{
		Name: "a b", Topic: strings.Repeat("x", 250), SessionTimeout: time.Millisecond, Heartbeat: time.Hour, Replicas: -1, Instance: "ü",
	}
	_, err = bad.settle()
	for _, field := range []string{"Name", "Topic", "SessionTimeout", "Heartbeat", "Replicas", "Instance"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if legal("my app/1") != "my_app_1" {
		t.Error(legal("my app/1"))
	}
}

func TestCheckLeader(t *testing.T) {
	for _, of := range []map[string]string{nil, {}, Metadata("ours")} {
		if err := CheckLeader("ours", of); err != nil {
			t.Error(err)
		}
	}
	err := CheckLeader("ours", Metadata("theirs"))
	if !errors.Is(err, ErrOtherGroup) || !strings.Contains(err.Error(), `"ours"`) || !strings.Contains(err.Error(), `"theirs"`) {
		t.Error(err)
	}
}
