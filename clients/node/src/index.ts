/**
 * Leader election through an agent of Tenure on the same machine (docs/agent.md).
 *
 *     import { Agent } from "tenure-agent"
 *
 *     const campaign = await new Agent("unix:/run/tenure/agent.sock").campaign("billing")
 *     try {
 *       for await (const term of campaign.terms()) { // waits until this program leads
 *         while (await term.mayAct(1000)) { // asks the agent, and that is the heartbeat
 *           await doOneStep(term.token) // takes less than 1 s
 *         }
 *       }
 *     } finally {
 *       await campaign.leave()
 *     }
 *
 * The heartbeats come from these calls alone, never from a timer or a task in the background. So a
 * program that hangs loses leadership. Call mayAct at least every third of the interval of
 * heartbeats, which is a third of the lease unless the settings say otherwise.
 *
 * Each call asks the agent, since the clock of Node stands still while the machine sleeps.
 */

import { type Instant, now, since } from "./clock.js"
import { AgentError, Connection, type Options, Over, Stream, Unreachable } from "./connection.js"

export { AgentError, type Options, Over, Unreachable }

/** The settings of a campaign. The agent has a value for each one that is left out. */
export interface Settings {
  id?: string
  address?: string
  priority?: number
  metadata?: Record<string, string>
  heartbeatMillis?: number
  leaseMillis?: number
  stopWithinMillis?: number
  finishWithinMillis?: number
}

/** An agent at unix:PATH, or at http://HOST:PORT on loopback. */
export class Agent {
  private readonly connection: Connection

  constructor(address = "unix:/run/tenure/agent.sock", options: Options = {}) {
    this.connection = new Connection(address, options)
  }

  /** Takes part in an election. Call leave when the work has ended, or use `await using`. */
  async campaign(election: string, settings: Settings = {}): Promise<Campaign> {
    const campaign = new Campaign(this.connection, election, settings)
    await campaign.begin()
    return campaign
  }
}

/** What an answer grants, counted from before its question was sent. */
interface Grant {
  token: number
  finish: boolean
  sent: Instant
  remaining: number
}

/** One candidate. */
export class Campaign {
  private readonly elections: string
  private path = ""
  private interval = 0
  private number = 0
  private stream?: Stream
  private beats: Promise<unknown> = Promise.resolve()
  /** The last token whose work has ended. That report may arrive late, so it is never used again. */
  private ended = 0
  /** @internal */
  stopping = false

  /** @internal */
  constructor(private readonly connection: Connection, election: string, private readonly settings: Settings) {
    this.elections = `/v1/elections/${encodeURIComponent(election)}`
  }

  /**
   * Waits until this program leads, again and again. The work of a term has ended when the next one
   * is asked for. If a campaign is over, another one begins; an agent that is gone is awaited.
   */
  async *terms(): AsyncGenerator<Term, void, void> {
    while (!this.stopping) {
      const token = await this.elected()
      if (token === 0) continue
      const term = new Term(this, token)
      try {
        yield term
      } finally {
        await term.finished()
      }
    }
  }

  /** Ends terms, and asks the work of a term to end: mayAct is false from now on. */
  stop(): void {
    this.stopping = true
    this.stream?.interrupt()
  }

  /** Asks this leader to hand over, to a candidate of this id if one is given. */
  async handOver(to = ""): Promise<void> {
    await this.connection.ask("POST", `${this.path}/hand-over`, to ? { to } : {})
  }

  /** Says whether this program is fit to lead. */
  async setEligible(eligible: boolean): Promise<void> {
    await this.connection.ask("PUT", `${this.path}/eligible`, { eligible })
  }

  /** Reports that the work has ended, and ends the campaign. The lease is released. */
  async leave(): Promise<void> {
    this.stop()
    if (this.stream) await this.tell("DELETE", "")
    this.stream?.close()
    delete this.stream
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave()
  }

  /** @internal Begins the campaign. */
  async begin(): Promise<void> {
    this.stream?.close()
    delete this.stream
    this.number = 0
    const stream = new Stream(await this.connection.open("POST", `${this.elections}/campaign`, this.settings))
    const first = await stream.wait(this.connection.timeout)
    if (this.stopping || typeof first?.campaign !== "string" || typeof first.heartbeatMillis !== "number") {
      stream.close()
      throw new Unreachable("the agent does not tell the campaign")
    }
    this.stream = stream
    this.path = `${this.elections}/campaigns/${first.campaign}`
    this.interval = first.heartbeatMillis
  }

  /** Sends heartbeats until an answer shows that this program leads. 0 means to try again. */
  private async elected(): Promise<number> {
    try {
      while (!this.stopping) {
        const { token, finish } = await this.heartbeat()
        if (token > this.ended && !finish) return token
        if (token) await this.report(token) // no work goes on
        await this.stream?.wait(this.interval / 3)
      }
    } catch (e) {
      if (!(e instanceof Over || e instanceof Unreachable)) throw e
      await this.beginAgain()
    }
    return 0
  }

  /**
   * Begins another campaign, after a pause. It fails if the agent is away, shuts down, or has not
   * noticed yet that the last campaign has lost its stream.
   */
  private async beginAgain(): Promise<void> {
    this.stream?.close()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    if (this.stopping) return
    try {
      await this.begin()
    } catch (e) {
      const passes = this.stopping || e instanceof Unreachable || (e instanceof AgentError && (e.status === 409 || e.status === 503))
      if (!passes) throw e
    }
  }

  /** @internal Sends a heartbeat, after those that other calls send. */
  heartbeat(): Promise<Grant> {
    const beat = this.beats.then(() => this.beat())
    this.beats = beat.catch(() => {})
    return beat
  }

  private async beat(): Promise<Grant> {
    if (!this.stream || this.stream.ended) throw new Over("the stream of events has ended")
    const sent = now()
    const standing = await this.connection.ask("POST", `${this.path}/heartbeat`, { number: ++this.number })
    if (typeof standing.remainingMillis !== "number") throw new Unreachable("the agent's answer is not complete")
    return { token: Number(standing.token ?? 0), finish: standing.finish === true, sent, remaining: standing.remainingMillis }
  }

  /** @internal Reports that the work of a term has ended. */
  async report(token: number): Promise<void> {
    this.ended = Math.max(this.ended, token)
    await this.tell("POST", "/finished", { token })
  }

  /** Sends a report. If it fails, the lease runs out. */
  private async tell(method: string, path: string, body?: Record<string, unknown>): Promise<void> {
    try {
      await this.connection.ask(method, this.path + path, body)
    } catch (e) {
      if (!(e instanceof Over || e instanceof Unreachable || e instanceof AgentError)) throw e
    }
  }
}

/** A term of leadership. Pass its token to the resource with each write. */
export class Term {
  private open = true
  private reported?: Promise<void>

  constructor(
    private readonly campaign: Campaign,
    /** Higher in every later term of the election. */
    readonly token: number,
  ) {}

  /**
   * Whether this program may act now, for so many milliseconds. It asks the agent each time, which
   * counts as a heartbeat. Act at once: a yes is for one act. False means to stop: the term is lost,
   * or the program is asked to finish.
   */
  async mayAct(needsMillis = 0): Promise<boolean> {
    if (!this.open || this.campaign.stopping) return false
    try {
      const grant = await this.campaign.heartbeat()
      if (grant.token !== this.token) this.open = false
      return this.open && !this.campaign.stopping && !grant.finish && grant.remaining - since(grant.sent) > needsMillis
    } catch (e) {
      if (!(e instanceof Over || e instanceof Unreachable)) throw e
      this.open = false
      return false
    }
  }

  /** Reports that the work has ended: the lease is released. The loop over terms calls it. */
  finished(): Promise<void> {
    this.open = false
    return (this.reported ??= this.campaign.report(this.token))
  }
}
