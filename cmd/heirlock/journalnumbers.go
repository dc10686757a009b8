package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// exactNumbers is an error if a schema holds an integer that double precision does not: the library keeps its bounds so, and
// would compare with another.
func exactNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err != nil || math.Abs(f) >= 1<<53 && !isExact(f, string(v)) {
			return fmt.Errorf("%s cannot be compared exactly", v)
		}
	case []any:
		for _, e := range v {
			if err := exactNumbers(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := exactNumbers(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// isExact reports whether a number in double precision is what its text says. Small fractions never come here, whose text
// would make fractions of a million digits.
func isExact(f float64, text string) bool {
	r, ok := new(big.Rat).SetString(text)
	return ok && r.Cmp(new(big.Rat).SetFloat64(f)) == 0
}

// machineNumbers makes each number one that the library can compare at once: an integer of 64 bits, or else the nearest of
// double precision. It would make a fraction of the text, which for 1e1000000 takes minutes.
func machineNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return u
		}
		f, _ := strconv.ParseFloat(string(v), 64)
		return max(-math.MaxFloat64, min(f, math.MaxFloat64)) // the library takes an infinity for 0
	case []any:
		for i := range v {
			v[i] = machineNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = machineNumbers(v[name])
		}
	}
	return v
}
