// Package dashboard shows elections in a browser. Use it to see which member leads each election
// and which members led before. It compares the time of each failover with the shortest possible
// time. If the store pushes changes, it also shows how close each renewal came to its deadline.
//
//	sources := []dashboard.Source{{Name: "orders", Store: store}}
//	d, err := dashboard.New(dashboard.Config{Sources: sources})
//	...
//	go d.Run(ctx)
//	http.Handle("/elections/", http.StripPrefix("/elections", d))
//
// A Dashboard observes, and writes nothing to a store unless Config.Actions is set. It remembers
// the terms that it saw itself, up to 200 of each election, and with Config.History keeps them
// across a restart. Requests are not authenticated: put the handler behind the same authentication
// as your other pages for operators.
//
// The command `tenure dashboard` serves the same without any code.
package dashboard
