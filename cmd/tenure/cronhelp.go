package main

const shortCron = "Run commands at the ticks of cron schedules, each tick on one machine"

const aboutCron = `Runs COMMAND at the ticks of a cron schedule. Start the same line on every machine: the leader of the
election runs the ticks, and the store knows which of them were started. So each tick starts at most
once, also when machines fail or their clocks differ. Two runs of a job never overlap. The command
runs without a shell and without standard input. Logs go to standard error.

A tick whose machine dies during the run is lost, and with --at-least-once it is run again: its
first run may have done all of its work. A run that ends with a code other than 0 has failed, and is
not repeated. "Exactly once" needs the help of the resource: give it TENURE_TICK as a unique key.

The command finds TENURE_ELECTION, TENURE_ID and TENURE_TOKEN in its environment, as with tenure
run. It also finds TENURE_JOB, TENURE_TICK (the planned instant, as in 2026-11-29T03:00:00Z) and
TENURE_ATTEMPT, which is 1 unless the tick is run again.

A guard, a second process, ends each run in time when the lease is lost, as with tenure run.

When cron receives SIGTERM, SIGINT, SIGHUP or SIGQUIT, or hands over leadership, nothing new starts.
Running commands are not signaled, and have --finish-within to end. Then they get SIGTERM, and
SIGKILL after --stop-within. A second such signal kills them at once.

With --file one process has several jobs, with one election for all. A job has name, schedule and
command: a list, or a text for sh -c. It may have timezone, catch-up, overlap, at-least-once, window
and timeout, and takes those that it lacks from defaults:

	defaults:
	  timezone: Europe/Berlin
	jobs:
	  - name: report
	    schedule: "0 3 * * *"
	    command: [./report, --full]
	    timeout: 1h
	  - name: clean
	    schedule: "*/15 * * * *"
	    command: find /var/spool/app -mtime +1 -delete

The file is read once: restart cron to change it, one machine at a time. Give all machines the same
jobs.

Exit codes:
  0    cron was asked to end
  125  no election could be held: wrong flags or file, no store, no rights
  126  the command of a job cannot be executed
  127  there is no such command

tenure jobs shows the last and the next tick of each job. A flag that is not given may come from the
environment: TENURE_STORE for --store, and so on.`

const examplesCron = `  tenure cron --store nats://nats:4222/ELECTIONS --election nightly --schedule '0 3 * * *' --timezone Europe/Berlin -- ./report
  tenure cron --store postgres://user@host/db --election clean --schedule '*/15 * * * *' --catch-up none --timeout 10m -- ./clean
  tenure cron --store nats://nats:4222/ELECTIONS --election jobs --file jobs.yaml --output /var/log/jobs`
