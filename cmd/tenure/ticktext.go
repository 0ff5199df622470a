package main

const shortTick = "Run a command once of several machines, from their crontabs"

const aboutTick = `Runs COMMAND on one of the machines whose crontabs start this same line at about the same time. The
others wait until it has ended, print one line that says where it ran, and exit with 0.

A tick is one run of the line that is due. With --period, two starts that are less than half of it
apart are for the same tick: with 1h, clocks and delays of cron may differ by 30 minutes. With
--tick, starts with the same name are for the same tick. The last 16 names are remembered.

The store has a record of each tick, under NAME/jobs/tick. By default a tick runs at most once: if
the machine dies during the run, the others wait for its lease to end, and say that the run was
interrupted. With --at-least-once one of them runs it again. A run that ended with another code than
0 has failed, and is not repeated. The first use of an election runs nothing, nor does a tick whose
record may be missing, since another machine may have run it: run the line once by hand before.
Runs never overlap: a tick that comes due during an earlier one is skipped, or waits with --queue.

The command runs as with tenure run: a guard stops it in time if the lease is lost. It finds
TENURE_TICK in its environment, the name or the start of the tick, TENURE_ATTEMPT, 1 unless it runs
again, and TENURE_TOKEN, TENURE_ID and TENURE_ELECTION.

Exit codes:
  N    the command's, if it ran on this machine; 128+S if signal S ended it
  0    it ran on another machine: finished, failed or interrupted, as the line says
  121  it ran on this machine, and was stopped because leadership was lost or handed over
  122  the command was not run, and the line says why; another machine may still run it
  125  wrong flags, no rights, or the store could not be reached within --wait
  126  the command cannot be executed
  127  there is no such command

--wait counts until the command has begun on any machine that is seen to lead. The object of --json
has time, event (finished, failed or lost), election, and of the run id, term, tick, attempt, began,
ended (or when it was found to be interrupted) and code.`

const examplesTick = `  tenure tick --store nats://nats:4222/ELECTIONS --election hourly-report --period 1h -- /usr/local/bin/report
  tenure tick --store nats://nats:4222/ELECTIONS --election nightly --tick "$(date -u +%F)" -- backup.sh`
