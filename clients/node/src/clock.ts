import * as os from "node:os"

/** A reading of the clocks, in milliseconds. */
export interface Instant {
  awake: number
  up: number
}

// On Linux, the clock of Node stands still while the machine sleeps. The uptime does not.
const sleeps = process.platform === "linux"
/** The uptime is rounded, by so many milliseconds at most. */
const rounded = 10
/** How much slower the clocks of two readings may go: 1 %. */
const drift = 1.01

export function now(): Instant {
  return { awake: performance.now(), up: sleeps ? os.uptime() * 1000 : 0 }
}

/** The longest time that can have passed, in milliseconds. */
export function since(earlier: Instant): number {
  const { awake, up } = now()
  return drift * Math.max(awake - earlier.awake, sleeps ? up - earlier.up + rounded : 0)
}
