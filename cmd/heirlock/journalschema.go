package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	if st, err := os.Stat(path); len(s) > 0 && err == nil && !st.Mode().IsRegular() { // a pipe may never end
		return nil, fmt.Errorf("%s is no regular file", path)
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
		err = plainNames(text)
	}
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

// plainNames is an error if a name occurs twice in an object of a schema, or is a keyword but for its case: the library takes
// either for what a reader would not.
func plainNames(text []byte) error {
	if !jsontext.Value(text).IsValid() {
		return errors.New("no valid JSON, or a name that occurs twice")
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		within, n := d.StackIndex(d.StackDepth())
		if within != '{' || token.Kind() != '"' || n%2 == 0 {
			continue
		}
		for _, keyword := range []string{"$ref", "$dynamicRef", "$id", "$anchor", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"} {
			if name := token.String(); name != keyword && strings.EqualFold(name, keyword) {
				return fmt.Errorf("%q is not the keyword %q", name, keyword)
			}
		}
	}
}

// compiled is the schema in a file.
func compiled(path string) (resolved *jsonschema.Resolved, err error) {
	defer func() { // the library panics at some schemas that refer to each other
		if r := recover(); r != nil {
			err = fmt.Errorf("the schema cannot be resolved: %v", r)
		}
	}()
	at, err := schemaURL(path)
	if err != nil {
		return nil, err
	}
	files := schemaFiles{}
	schema, err := files.load(at)
	if err != nil {
		return nil, err
	}
	resolved, err = schema.Resolve(&jsonschema.ResolveOptions{BaseURI: at.String(), Loader: files.load})
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
		if depth(event) > schemaDepth {
			return fmt.Errorf("schema: nested deeper than %d", schemaDepth)
		}
		if err := schema.Validate(machineNumbers(instance)); err != nil {
			return mismatch(err)
		}
		return nil
	}, nil
}

// schemaDepth bounds the levels of an event that a schema is held against: the library takes stack for each.
const schemaDepth = 500

// depth is how deep valid JSON is nested.
func depth(text []byte) (most int) {
	at, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			at++
			most = max(most, at)
		case !quoted && (c == '}' || c == ']'):
			at--
		}
	}
	return most
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
