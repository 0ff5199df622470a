package main

import "time"

// event is an action at a moment of true time.
type event struct {
	at    time.Duration
	order uint64 // events of one moment happen in the order in which they were made
	do    func()
}

func (e event) before(f event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// queue is a binary heap of events. The one in the standard library boxes every element.
type queue struct {
	heap  []event
	order uint64
}

func (q *queue) add(at time.Duration, do func()) {
	q.order++
	q.heap = append(q.heap, event{at, q.order, do})
	i := len(q.heap) - 1
	for i > 0 && q.heap[i].before(q.heap[(i-1)/2]) {
		q.heap[i], q.heap[(i-1)/2] = q.heap[(i-1)/2], q.heap[i]
		i = (i - 1) / 2
	}
}

func (q *queue) pop() event {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	q.sink(0)
	return top
}

func (q *queue) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q.heap); c++ {
			if q.heap[c].before(q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
