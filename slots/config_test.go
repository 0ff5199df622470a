package slots_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/slots"
)

func TestConfig(t *testing.T) {
	for why, c := range map[string]struct {
		fields []string
		name   string
		config slots.Config
	}{
		"the smallest number":            {nil, "a", slots.Config{Slots: 1}},
		"the largest number":             {nil, "a", slots.Config{Slots: 256, PerMember: 256}},
		"there must be a number":         {[]string{"Slots"}, "a", slots.Config{}},
		"each slot costs requests":       {[]string{"Slots"}, "a", slots.Config{Slots: 257}},
		"no member holds more than all":  {[]string{"PerMember"}, "a", slots.Config{Slots: 2, PerMember: 3}},
		"names of elections need a head": {[]string{"Name"}, "", slots.Config{Slots: 1}},
		"members are equal":              {[]string{"Election.Priority"}, "a", slots.Config{Slots: 1, Election: tenure.Config{Priority: 1}}},
		"the gate is a nominator": {[]string{"Election.Nomination"}, "a", slots.Config{Slots: 1, Election: tenure.Config{
			Nomination: nomination.Config{Precedence: time.Second},
		}}},
		"the key is in use": {[]string{"Election.Metadata"}, "a", slots.Config{Slots: 1, Election: tenure.Config{
			Metadata: map[string]string{slots.MetadataKey: "7"},
		}}},
		"a slot is seen once in a lease": {[]string{"Election.Tuning.Renew"}, "a", slots.Config{Slots: 1, Election: tenure.Config{
			Tuning: tenure.Tuning{Renew: 8 * time.Second},
		}}},
		"problems of an election have its field": {[]string{"Election.Lease"}, "a", slots.Config{Slots: 1, Election: tenure.Config{
			Lease: 2 * time.Hour,
		}}},
	} {
		_, err := slots.New(memory.New(), c.name, c.config)
		var fields []string
		if wrong, ok := errors.AsType[*tenure.ConfigError](err); ok {
			for _, f := range wrong.Fields {
				fields = append(fields, f.Field)
			}
		} else if err != nil {
			t.Errorf("%s: %v", why, err)
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: problems of %v, not %v: %v", why, fields, c.fields, err)
		}
	}
	if _, err := slots.New(nil, "a", slots.Config{Slots: 1}); err == nil {
		t.Error("a member without a store")
	}
}

func TestNumber(t *testing.T) {
	if n := slots.Number(nil); n != 0 {
		t.Errorf("the nil term has slot %d", n)
	}
	m, err := slots.New(memory.New(), "a/slots/7", slots.Config{Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	if name := m.ElectionOf(2).Name(); name != "a/slots/7/slots/2" {
		t.Errorf("the election of slot 2 is %q", name)
	}
	if m.ElectionOf(0) != nil || m.ElectionOf(3) != nil {
		t.Error("there are slots 0 and 3")
	}
}
