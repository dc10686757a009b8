// Package house holds the rules that this repository keeps to, as a test: who imports whom, where build tags live,
// which files stay pure, how long a file gets, what is exported, and what compiles where. It has no code of its own.
package house
