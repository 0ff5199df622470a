// Package dashboard shows elections in a browser: which member leads each, which led before, how
// close each renewal came to its deadline, if the store pushes changes, and how long each failover
// took, compared with the shortest possible time.
//
//	d, err := dashboard.New(dashboard.Config{Sources: []dashboard.Source{{Name: "orders", Store: store}}})
//	...
//	go d.Run(ctx)
//	http.Handle("/elections/", http.StripPrefix("/elections", d))
//
// A Dashboard observes, and writes nothing to a store unless Config.Actions is set. It remembers
// the terms that it saw itself, up to 200 of each election, and with Config.History keeps them over
// a restart. Requests are not authenticated: put the handler behind the same authentication as your
// other pages for operators.
//
// The command `tenure dashboard` serves the same without any code.
package dashboard
