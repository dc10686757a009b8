package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemaFiles are the files of a schema, by their URLs: the one that was named, and what it refers to.
type schemaFiles map[string]any

// load reads a schema, and keeps what it is made of. What is not a file is not read.
func (s schemaFiles) load(at *url.URL) (*jsonschema.Schema, error) {
	if at.Scheme != "file" || at.Host != "" || at.RawQuery != "" {
		return nil, fmt.Errorf("%s is no file", at)
	}
	path := filepath.FromSlash(at.Path)
	if len(path) > 2 && path[2] == ':' { // /C:/…
		path = path[1:]
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := decoded(text)
	if err == nil {
		err = exactNumbers(doc)
	}
	var schema jsonschema.Schema
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s[at.String()] = doc
	return &schema, nil
}

// schemaURL is the place of a file, which what it refers to is beside. In a URL some characters of a name mean something
// else.
func schemaURL(path string) (*url.URL, error) {
	path, err := absolute(path)
	if err != nil {
		return nil, err
	}
	if path = filepath.ToSlash(path); path[0] != '/' { // C:/…
		path = "/" + path
	}
	return &url.URL{Scheme: "file", Path: path}, nil
}

// compiled is the schema in a file.
func compiled(path string) (*jsonschema.Resolved, error) {
	at, err := schemaURL(path)
	if err != nil {
		return nil, err
	}
	files := schemaFiles{}
	schema, err := files.load(at)
	if err != nil {
		return nil, err
	}
	resolved, err := schema.Resolve(&jsonschema.ResolveOptions{BaseURI: at.String(), Loader: files.load})
	if err != nil {
		return nil, err
	}
	return resolved, files.endless()
}

// schemaValidator compiles the JSON Schema in a file. What it refers to is read from files, never from the network.
// Integers of 64 bits are compared exactly, other numbers as double precision has them.
func schemaValidator(path string) (func(jsontext.Value) error, error) {
	schema, err := compiled(path)
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		return nil, &exitError{exitNoInput, fmt.Errorf("--schema: %w", err)}
	}
	if err != nil {
		return nil, usageError("--schema: %v", err)
	}
	return func(event jsontext.Value) error {
		instance, err := decoded(event)
		if err != nil {
			return err
		}
		if err := schema.Validate(machineNumbers(instance)); err != nil {
			return mismatch(err)
		}
		return nil
	}, nil
}

// decoded is one JSON value, its numbers as their text.
func decoded(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// mismatch says in one line where in the schema it stands what does not match, and what that is. The library's words can hold
// the whole event, and numbers rounded: they are left out but for names and types.
func mismatch(err error) error {
	const within = "validating "
	at, text := "", err.Error()
	for strings.HasPrefix(text, within) {
		place, rest, found := strings.Cut(text[len(within):], ": ")
		if !found {
			break
		}
		at, text = place, rest
	}
	keyword, detail, _ := strings.Cut(text, ": ")
	switch keyword {
	case "required":
		keyword += ": " + detail
	case "type":
		if i := strings.LastIndex(detail, " has type "); i >= 0 {
			keyword += ": " + detail[i+1:]
		}
	}
	return fmt.Errorf("schema: at %s: %s", at, keyword)
}
