package main

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mostDigits bounds the digits of a number and its exponent. The library makes fractions of numbers: one of 1e1000000 has a
// million digits, and takes minutes.
const mostDigits = 1000

var errNumber = errors.New("a number has over 1000 digits, or an exponent over 1000")

// numbersBounded is errNumber if a value that jsonschema.UnmarshalJSON made holds such a number.
func numbersBounded(v any) error {
	within := slices.Values([]any(nil))
	switch v := v.(type) {
	case json.Number:
		return numberBounded(string(v))
	case []any:
		within = slices.Values(v)
	case map[string]any:
		within = maps.Values(v)
	}
	for element := range within {
		if err := numbersBounded(element); err != nil {
			return err
		}
	}
	return nil
}

func numberBounded(text string) error {
	digits, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		digits = text[:i]
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil { // out of range
			return errNumber
		}
	}
	n := len(digits) - strings.Count(digits, "-") - strings.Count(digits, ".")
	if max(n, exponent, -exponent) > mostDigits {
		return errNumber
	}
	return nil
}
