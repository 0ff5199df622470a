// Package agent holds package agent of the core to its OpenAPI document.
package agent
