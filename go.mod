module github.com/heirlock/heirlock

go 1.26.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/go-json-experiment/json v1.27.2
	github.com/google/uuid v1.6.0
	golang.org/x/sys v0.50.0
)
