package main

import "time"

// scenario bounds one exploration. All orders of events within the bounds are tried.
type scenario struct {
	name    string
	members int
	until   time.Duration // true time
	pushes  bool          // the register pushes each change
	mixed   bool          // the second member has half of the lease
	may     budget        // how often which fault may come, at any moment
}

// quick are the scenarios of each run. They take half a minute on one core.
var quick = []scenario{
	{name: "calm", members: 3, until: 12 * time.Second},
	{name: "crash", members: 2, until: 10 * time.Second, may: budget{Crashes: 1}},
	{name: "freeze", members: 2, until: 10 * time.Second, may: budget{Freezes: 1}},
	{name: "hold", members: 2, until: 8 * time.Second, may: budget{Holds: 1, Finishes: 1}},
	{name: "order", members: 2, until: 8 * time.Second, may: budget{Orders: 1, Finishes: 1}},
	{name: "fail", members: 2, until: 8 * time.Second, may: budget{Failures: 1, Repeats: 1}},
	{name: "purge", members: 2, until: 9 * time.Second, may: budget{Purges: 1}},
	{name: "recreate", members: 2, until: 8 * time.Second, may: budget{Recreations: 1}},
	{name: "restore", members: 2, until: 5 * time.Second, may: budget{Restores: 1, Finishes: 1, Crashes: 1}},
	{name: "wreck", members: 2, until: 8 * time.Second, may: budget{Wrecks: 1}},
	{name: "stale", members: 2, until: 8 * time.Second, may: budget{Stale: 1, Crashes: 1}},
	{name: "cut", members: 2, until: 6 * time.Second, may: budget{Cuts: 1}},
	{name: "push", members: 2, until: 8 * time.Second, pushes: true, may: budget{Finishes: 1}},
	{name: "push-freeze", members: 2, until: 5 * time.Second, pushes: true, may: budget{Freezes: 1}},
	{name: "mixed", members: 2, until: 8 * time.Second, mixed: true, may: budget{Freezes: 1}},
}

// large are the scenarios that take minutes.
var large = []scenario{
	{name: "hold-twice", members: 2, until: 8 * time.Second, may: budget{Holds: 2}},
	{name: "crash-hold", members: 2, until: 8 * time.Second, may: budget{Crashes: 1, Holds: 1}},
	{name: "fail-hold", members: 2, until: 7 * time.Second, may: budget{Failures: 1, Holds: 1}},
	{name: "finish-hold", members: 2, until: 6 * time.Second, may: budget{Finishes: 1, Failures: 1, Holds: 1}},
	{name: "freeze-hold", members: 2, until: 7 * time.Second, may: budget{Freezes: 1, Holds: 1}},
	{name: "purge-freeze", members: 2, until: 7 * time.Second, may: budget{Purges: 1, Freezes: 1}},
	{name: "repeat-finish", members: 2, until: 8 * time.Second, may: budget{Repeats: 1, Finishes: 2}},
	{name: "push-hold", members: 2, until: 7 * time.Second, pushes: true, may: budget{Holds: 1, Finishes: 1}},
	{name: "mixed-hold", members: 2, until: 7 * time.Second, mixed: true, may: budget{Freezes: 1, Holds: 1}},
	{name: "recreate-freeze", members: 2, until: 7 * time.Second, may: budget{Recreations: 1, Freezes: 1}},
	{name: "recreate-hold", members: 2, until: 7 * time.Second, may: budget{Recreations: 1, Holds: 1}},
	{name: "restore-freeze", members: 2, until: 7 * time.Second, may: budget{Restores: 1, Freezes: 1}},
	{name: "restore-finish", members: 2, until: 7 * time.Second, may: budget{Restores: 1, Finishes: 1, Crashes: 1}},
	{name: "wreck-freeze", members: 2, until: 4 * time.Second, may: budget{Wrecks: 1, Freezes: 1}},
	{name: "stale-freeze", members: 2, until: 7 * time.Second, may: budget{Stale: 1, Freezes: 1}},
	{name: "stale-hold", members: 2, until: 7 * time.Second, may: budget{Stale: 1, Holds: 1}},
	{name: "push-recreate", members: 2, until: 7 * time.Second, pushes: true, may: budget{Recreations: 1}},
	{name: "push-restore", members: 2, until: 6 * time.Second, pushes: true, may: budget{Restores: 1, Finishes: 1}},
	{name: "three-freeze", members: 3, until: 6 * time.Second, may: budget{Freezes: 1}},
	{name: "three-crash", members: 3, until: 7 * time.Second, may: budget{Crashes: 1}},
}

func (s *scenario) model() *model {
	mo := newModel(s.members, s.mixed)
	mo.until, mo.watch, mo.start = s.until, s.pushes, s.may
	return mo
}
