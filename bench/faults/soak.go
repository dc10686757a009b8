package main

import "time"

func soak(string, string, time.Duration) int { return 2 }
