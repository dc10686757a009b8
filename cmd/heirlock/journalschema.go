package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaValidator compiles the JSON Schema in a file. What it refers to is read from files beside it, never from the
// network. Numbers are compared exactly, whatever their size.
func schemaValidator(path string) (func(jsontext.Value) error, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, &exitError{exitNoInput, fmt.Errorf("--schema: %w", err)}
	}
	schema, err := jsonschema.NewCompiler().Compile(path)
	if err != nil {
		return nil, usageError("--schema: %v", err)
	}
	return func(event jsontext.Value) (err error) {
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(event))
		if err != nil {
			return err
		}
		defer func() {
			if recover() != nil { // the library has no value for 1e1000001
				err = errors.New("schema: a number is too large to be compared")
			}
		}()
		err = schema.Validate(instance)
		if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
			return mismatch(invalid)
		}
		return err
	}, nil
}

// mismatch is what does not match, in one line.
func mismatch(e *jsonschema.ValidationError) error {
	return fmt.Errorf("schema: %s", strings.Join(reasons(nil, e), "; "))
}

// reasons appends those at the bottom. The library shows numbers rounded, and so its words about them are left out.
func reasons(all []string, e *jsonschema.ValidationError) []string {
	for _, cause := range e.Causes {
		all = reasons(all, cause)
	}
	if len(e.Causes) > 0 {
		return all
	}
	text := e.Error()
	switch e.ErrorKind.(type) {
	case *kind.Maximum, *kind.Minimum, *kind.ExclusiveMaximum, *kind.ExclusiveMinimum, *kind.MultipleOf:
		text, _, _ = strings.Cut(text, ": got ")
	}
	return append(all, text)
}
