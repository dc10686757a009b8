// Package model holds the lock's protocol for the model checker spin, and a test that runs it: go test -v ./model. README.md
// says what is modelled, and what was found.
package model
