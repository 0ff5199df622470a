package ticks

import (
	"slices"
	"time"
)

// dayHours is how many hours a Day has.
const dayHours = 24

// Day counts the ticks of the last hours, by the hours of their planned instants in UTC. It is for
// people, and decides nothing.
type Day struct {
	// Hour is when the last hour began in which a tick was planned. The last number of each list is
	// of that hour, and those before it of earlier ones. Numbers that are left out are 0.
	Hour     time.Time `json:"hour,omitzero"`
	Finished []int     `json:"finished,omitempty"`
	Failed   []int     `json:"failed,omitempty"`
	Lost     []int     `json:"lost,omitempty"`
	Missed   []int     `json:"missed,omitempty"`
}

// add counts a tick in one of the lists.
func (d *Day) add(list *[]int, planned time.Time) {
	hour := planned.UTC().Truncate(time.Hour)
	if d.Hour.Sub(hour).Abs() >= dayHours*time.Hour { // a clock was wrong, or nothing was planned
		*d = Day{Hour: hour}
	}
	if hour.After(d.Hour) {
		passed := make([]int, hour.Sub(d.Hour)/time.Hour)
		for _, l := range []*[]int{&d.Finished, &d.Failed, &d.Lost, &d.Missed} {
			*l = recent(append(*l, passed...))
		}
		d.Hour = hour
	}
	back := int(d.Hour.Sub(hour) / time.Hour)
	if missing := back + 1 - len(*list); missing > 0 {
		*list = append(make([]int, missing), *list...)
	}
	(*list)[len(*list)-1-back]++
}

// recent returns the numbers of the last hours, from the first that is not 0.
func recent(list []int) []int {
	list = list[max(0, len(list)-dayHours):]
	i := slices.IndexFunc(list, func(n int) bool { return n != 0 })
	if i < 0 {
		return nil
	}
	return list[i:]
}
