// Package guardtest is for the tests of guards and of programs that use them. It runs tests in a
// process of their own, because they stop or kill it, and commands that note when they acted.
package guardtest
