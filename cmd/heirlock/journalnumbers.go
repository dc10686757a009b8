package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// exactNumbers is an error if a schema holds an integer that double precision does not: the library keeps its bounds so, and
// would compare with another.
func exactNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err != nil || !strings.ContainsAny(string(v), ".eE") && !isInteger(f, string(v)) {
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

// isInteger reports whether a number is that integer. Double precision has none of more than 309 digits.
func isInteger(f float64, text string) bool {
	i, ok := new(big.Int).SetString(text, 10)
	whole, exact := big.NewFloat(f).Int(nil)
	return ok && exact == big.Exact && i.Cmp(whole) == 0
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
