module github.com/heirlock/heirlock/bench

go 1.26.0

require (
	github.com/alexflint/go-filemutex v1.3.0
	github.com/gofrs/flock v0.13.2
	github.com/heirlock/heirlock v0.0.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
)

replace github.com/heirlock/heirlock => ../
