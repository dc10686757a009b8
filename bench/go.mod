module github.com/heirlock/heirlock/bench

go 1.26.0

require (
	github.com/alexflint/go-filemutex v1.3.0
	github.com/go-json-experiment/json v1.27.2
	github.com/gofrs/flock v0.13.2
	github.com/heirlock/heirlock v0.0.0
	github.com/juju/mutex/v2 v2.0.0-20220203023141-11eeddb42c6c
	github.com/nightlyone/lockfile v1.0.0
	github.com/rogpeppe/go-internal v1.16.0
	github.com/rs/zerolog v1.35.1
	go.uber.org/zap v1.28.0
	golang.org/x/sys v0.50.0
	gopkg.in/natefinch/lumberjack.v2 v2.2.1
)

require (
	github.com/ebitengine/purego v0.11.3 // indirect
	github.com/juju/errors v0.0.0-20220203013757-bd733f3c86b9 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	go.uber.org/multierr v1.10.0 // indirect
)

replace github.com/heirlock/heirlock => ../
