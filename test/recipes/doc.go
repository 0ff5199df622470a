// Package recipes is nothing to import: its tests carry out, as far as that goes without systemd,
// Kubernetes and Docker, what deploy and the documentation tell people to do.
//
//	go test ./test/recipes                            checks the guide's times, and how command lines are found in documents
//	go test -tags integration -short ./test/recipes   also reads all recipes, and runs each command line of tenure run on a
//	                                                  server inside
//	go test -tags integration ./test/recipes          also builds as the Dockerfile does, and runs the result as process 1
//	                                                  with nothing else around it
//
// With the tag, a missing systemd-analyze fails the tests, and so do missing rights to start
// process namespaces. The last tests are for Linux.
package recipes
