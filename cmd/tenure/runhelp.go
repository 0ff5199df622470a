package main

const aboutRun = `Runs COMMAND while this candidate leads the election, and never while another candidate leads. The
command runs without a shell, and inherits standard input, output and error. Logs go to standard
error.

The command finds TENURE_ELECTION, TENURE_ID and TENURE_TOKEN in its environment. The token is
higher in every later term. So a resource that refuses writes with a lower token than it has seen is
safe even from a command that was frozen and resumes.

When the lease is lost, the command's process group gets SIGTERM, and then SIGKILL, early enough to
be dead before another candidate can be elected. A guard, a second process, ensures this even if
this process dies, is stopped or hangs. If both are killed, processes that have left the command's
process group live on, unless --pid-namespace is set: then the command runs in a PID namespace,
which the kernel ends. After a loss this candidate campaigns again, or with --once exits.

When run receives SIGTERM or SIGINT, it passes the signal on to the command, which then has
--finish-within to finish. Until then run renews the lease, and then releases it, so that the next
leader starts at once. A second such signal kills the command at once. Other signals are passed on
to the command. When the command ends by itself, run ends the processes that the command has left
behind, releases the lease, and exits with the command's code.

If the command ended within 5 seconds (1 second with code 0), run waits until that time has passed,
and up to a quarter longer, before it exits. Otherwise leadership would move all the time if a
supervisor starts run again at once. With --restart the command is run again in the same term and
with the same token, after pauses that grow from 1 second. During a pause no command runs. After
five failures in a row, each within 10 seconds, other candidates get their turn. They also do if the
command cannot be started.

Exit codes:
  N    the command's, if it ended by itself or because run was asked to end; 128+S if signal S ended it
  0    run was asked to end while it did not lead
  121  leadership was lost or handed over, with --once
  125  no election could be held: wrong flags, no store, no rights
  126  the command cannot be executed
  127  there is no such command

A flag that is not given may come from the environment: TENURE_STORE for --store, TENURE_STOP_WITHIN
for --stop-within, and so on. tenure help stores explains the values of --store and --peer.`

const examplesRun = `  tenure run --store nats://nats:4222/ELECTIONS --election billing -- ./billing-scheduler --config prod.yaml
  tenure run --store s3://bucket/elections --election nightly --lease 30s --once -- backup.sh
  tenure run --store nats://nats:4222/ELECTIONS --election billing --restart on-failure -- ./billing-scheduler
  tenure run --store kafka://kafka-1:9092/elections --election writer --stop-within 2s -- java -jar writer.jar`
