// Package guardtest serves the tests of guards and of programs that use them: tests that need a
// process of their own, because they stop or kill it, and commands that note when they acted.
package guardtest
