// Package heirlock is an exclusive lock whose owner is a process instance: one lifetime of one process, told by boot,
// process number, kernel start time and namespaces. It is inherited only from an owner that is provably gone.
//
// Most programs want two calls: [TryAcquire] to be the only instance or to leave, and [Acquire] to wait for their turn.
// Both return a [Lock] to release. [Inspect] explains a lock, with its evidence; a refusal does so too ([HeldError]).
//
// Not promised: that anything but kernel evidence counts. No age, heartbeat or timeout ever takes a lock over, and
// where the evidence does not reach (another machine, another namespace, another platform than Linux and macOS) a lock
// that was left behind is refused until an operator removes it by its id ([Reclaim]). The lock keeps out those who
// use it; it does not keep anybody from the data. docs/design.md has the protocol and its limits.
package heirlock
