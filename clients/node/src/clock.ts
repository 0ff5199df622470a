import * as os from "node:os"

/** A reading of the clocks, in milliseconds. */
export interface Instant {
  /** The clock of Node, which stands still on Linux while the machine sleeps. */
  awake: number
  /** The uptime, which goes on. It is 0 on other systems. */
  up: number
}

const readsUptime = process.platform === "linux"
/** The largest error of the uptime by rounding, in milliseconds. */
const rounding = 10
/** Allows for a drift of 1 % between two clocks. */
const drift = 1.01

export function now(): Instant {
  return { awake: performance.now(), up: readsUptime ? os.uptime() * 1000 : 0 }
}

/** Returns the longest time that can have passed, in milliseconds. */
export function since(earlier: Instant): number {
  const { awake, up } = now()
  return drift * Math.max(awake - earlier.awake, readsUptime ? up - earlier.up + rounding : 0)
}
