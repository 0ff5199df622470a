package schedule

import (
	"container/heap"
	"time"
)

// queue has the jobs whose next pass is due at a known time, the first one in front. So an event
// costs no look at all other jobs.
type queue []*job

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is for package heap.
func (q *queue) Push(j any) {
	j.(*job).place = len(*q)
	*q = append(*q, j.(*job))
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	j.place = -1
	*q = (*q)[:last]
	return j
}

// set puts a job where it belongs, or takes it out if no time is known.
func (q *queue) set(j *job, due time.Time, known bool) {
	if j.place >= 0 {
		heap.Remove(q, j.place)
	}
	if known {
		j.due = due
		heap.Push(q, j)
	}
}

// next takes the first job out if it is due; nil: none is.
func (q *queue) next(now time.Time) *job {
	if len(*q) == 0 || (*q)[0].due.After(now) {
		return nil
	}
	return heap.Pop(q).(*job)
}
