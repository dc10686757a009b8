package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// schemaFiles reads schemas: files alone, and of them the numbers that can be compared.
type schemaFiles struct{}

// Load reads what a schema refers to.
func (s schemaFiles) Load(url string) (any, error) {
	path, err := jsonschema.FileLoader{}.ToFile(url)
	if err != nil {
		return nil, err
	}
	return s.read(path)
}

func (schemaFiles) read(path string) (any, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err == nil {
		err = numbersBounded(doc)
	}
	if _, named := errors.AsType[*fs.PathError](err); err != nil && !named {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return doc, err
}

// schemaURL is the place of a file, which what it refers to is beside. In a URL some characters of a name mean something
// else.
func schemaURL(path string) (string, error) {
	path, err := absolute(path)
	if err != nil {
		return "", err
	}
	if path = filepath.ToSlash(path); path[0] != '/' { // C:/…
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}

// compiled is the schema in a file.
func compiled(path string) (*jsonschema.Schema, error) {
	doc, err := schemaFiles{}.read(path)
	if err != nil {
		return nil, err
	}
	at, err := schemaURL(path)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(schemaFiles{})
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// schemaValidator compiles the JSON Schema in a file. What it refers to is read from files beside it, never from the
// network. Numbers are compared exactly.
func schemaValidator(path string) (func(jsontext.Value) error, error) {
	schema, err := compiled(path)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return nil, &exitError{exitNoInput, fmt.Errorf("--schema: %w", err)}
	}
	if err != nil {
		return nil, usageError("--schema: %v", err)
	}
	return func(event jsontext.Value) error {
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(event))
		if err != nil {
			return err
		}
		if err := numbersBounded(instance); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
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
