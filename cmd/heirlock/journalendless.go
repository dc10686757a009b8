package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// schemaPlace is an object in one of the files of a schema. Any object counts as a schema: one that is none refers to nothing.
type schemaPlace struct {
	object   map[string]any
	resource *url.URL // what its references are relative to
	alike    []string // the names of the schemas that are held against the same part of an event
	refs     []string // those of them that must exist
	unclear  string   // why it cannot be followed
}

// endless is an error if a schema comes back to itself without going deeper into the event, as {"$ref":"#"} does. The
// library would follow it until the stack ends, and the process with it. What cannot be followed here as the library does
// is an error too: a reference to a place that is not found by its plain name, an id beside a reference or that is an anchor.
func (s schemaFiles) endless() error {
	places := map[string]*schemaPlace{} // by URL and JSON pointer or anchor
	for file, doc := range s {
		at, err := url.Parse(file)
		if err != nil {
			return err
		}
		collect(places, doc, at, []string{file + "#"})
	}
	const entered, left = 1, 2
	state := map[*schemaPlace]int{}
	var enter func(name string) error
	enter = func(name string) error {
		p := places[name]
		if p == nil || state[p] == left {
			return nil
		}
		if state[p] == entered {
			return fmt.Errorf("%s leads back to itself without end", name)
		}
		if p.unclear != "" {
			return fmt.Errorf("%s: %s", name, p.unclear)
		}
		state[p] = entered
		for _, to := range p.refs {
			if places[to] == nil {
				return fmt.Errorf("%s refers to %s, which is not found", name, to)
			}
		}
		for _, next := range slices.Concat(p.refs, p.alike) {
			if err := enter(next); err != nil {
				return err
			}
		}
		state[p] = left
		return nil
	}
	for name := range places {
		if err := enter(name); err != nil {
			return err
		}
	}
	return nil
}

var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// collect adds what is in a value, under each of its names: a schema with an id has its own, and an anchor is one too.
func collect(places map[string]*schemaPlace, v any, resource *url.URL, names []string) {
	below := func(token string) (out []string) {
		for _, n := range names {
			out = append(out, n+"/"+pointerToken.Replace(token))
		}
		return out
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			collect(places, e, resource, below(strconv.Itoa(i)))
		}
	case map[string]any:
		if id, err := url.Parse(text(v["$id"])); err == nil && id.String() != "" && id.Fragment == "" {
			resource = resource.ResolveReference(id)
			names = append(names, resource.String()+"#")
		}
		p := &schemaPlace{object: v, resource: resource}
		switch id := text(v["$id"]); {
		case id != "" && v["$ref"] != nil:
			p.unclear = "an $id beside a $ref"
		case strings.Contains(id, "#"):
			p.unclear = "an $id with a fragment"
		case v["$dynamicRef"] != nil:
			p.unclear = "a $dynamicRef"
		}
		for _, n := range names {
			places[n] = p
		}
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor := text(v[keyword]); anchor != "" {
				places[resource.String()+"#"+anchor] = p
			}
		}
		p.refer(names[0])
		for name, e := range v {
			switch name {
			case "const", "enum", "default", "examples": // values, not schemas
			default:
				collect(places, e, resource, below(name))
			}
		}
	}
}

// refer finds the names of the schemas that are alike.
func (p *schemaPlace) refer(name string) {
	if to, err := url.Parse(text(p.object["$ref"])); err == nil && p.object["$ref"] != nil {
		to = p.resource.ResolveReference(to)
		fragment := to.Fragment
		to.Fragment, to.RawFragment = "", ""
		p.refs = append(p.refs, to.String()+"#"+fragment)
	}
	for _, keyword := range []string{"not", "if", "then", "else"} {
		p.alike = append(p.alike, name+"/"+keyword)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"} {
		switch all := p.object[keyword].(type) {
		case []any:
			for i := range all {
				p.alike = append(p.alike, name+"/"+keyword+"/"+strconv.Itoa(i))
			}
		case map[string]any:
			for token := range all {
				p.alike = append(p.alike, name+"/"+keyword+"/"+pointerToken.Replace(token))
			}
		}
	}
}

// text is a value if it is a string, and else "".
func text(v any) string {
	s, _ := v.(string)
	return s
}
