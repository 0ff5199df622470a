// Package dashboard tests the dashboard in a real browser, over a real server and real candidates.
package dashboard
