// Package pages keeps processes small that wait most of the time. Starting a large program touches many pages of its file, which then
// count as the process's memory though nothing needs them any more. What is used again comes from the system's cache.
package pages
