// Package admin is for operators and their tools. A [Record] describes the value that a store holds
// for an election; the Status of package tenure carries it. [Reset] replaces a value that stops the
// election. Programs that only campaign or observe need neither.
package admin
