module github.com/tenure-go/tenure/driver/gcsobject

go 1.26.0

require (
	github.com/tenure-go/tenure v0.0.0
	golang.org/x/oauth2 v0.37.0
)

require cloud.google.com/go/compute/metadata v0.3.0 // indirect

replace github.com/tenure-go/tenure => ../..
