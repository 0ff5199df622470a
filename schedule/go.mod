module github.com/tenure-go/tenure/schedule

go 1.26.0

require (
	github.com/netresearch/go-cron v0.9.1
	github.com/tenure-go/tenure v0.0.0
)

replace github.com/tenure-go/tenure => ..
