/**
 * Leader election through an agent of Tenure on the same machine (docs/agent.md).
 *
 *     import { Agent } from "tenure-agent"
 *
 *     const campaign = await new Agent("unix:/run/tenure/agent.sock").campaign("billing")
 *     try {
 *       for await (const term of campaign.terms()) { // waits until this program leads
 *         while (await term.mayAct(1000)) { // sends a heartbeat
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

/** The answer to a heartbeat. */
interface Grant {
  token: number
  finish: boolean
  /** The clocks before the heartbeat was sent: the time counts from then. */
  sent: Instant
  remainingMillis: number
}

/** One candidate. */
export class Campaign {
  private readonly elections: string
  private path = ""
  private interval = 0
  private number = 0
  private stream?: Stream
  private beats: Promise<unknown> = Promise.resolve()
  private eligible = true
  /** The last token whose work has ended. A late report can still release its lease. */
  private lastEnded = 0
  /** @internal */
  stopping = false

  /** @internal */
  constructor(
    private readonly connection: Connection,
    election: string,
    private readonly settings: Settings,
  ) {
    this.elections = `/v1/elections/${encodeURIComponent(election)}`
  }

  /**
   * Yields a term each time when this program leads. The loop asks for the next term when the work
   * of this one has ended. If a campaign is over, another one begins. The loop waits for an agent
   * that is gone.
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

  /** Ends the loop over terms: mayAct returns false from now on. */
  stop(): void {
    this.stopping = true
    this.stream?.interrupt()
  }

  /** Asks this leader to hand over to the candidate with this id, or to any if it is empty. */
  async handOver(to = ""): Promise<void> {
    await this.connection.ask("POST", `${this.path}/hand-over`, to ? { to } : {})
  }

  /**
   * Sets whether this program is fit to lead. Later campaigns of this object keep the value, even
   * if this call throws.
   */
  async setEligible(eligible: boolean): Promise<void> {
    this.eligible = eligible
    if (this.stream && !this.stream.ended) await this.tellEligible(this.path)
  }

  private async tellEligible(path: string): Promise<void> {
    await this.connection.ask("PUT", `${path}/eligible`, { eligible: this.eligible })
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
    const path = `${this.elections}/campaign`
    const stream = new Stream(await this.connection.open("POST", path, this.settings))
    try {
      await this.join(stream)
    } catch (e) {
      stream.close()
      throw e
    }
  }

  /** Waits for the first event of a campaign, and tells the agent if this program is unfit. */
  private async join(stream: Stream): Promise<void> {
    await stream.wait(this.connection.timeout)
    const { campaign, heartbeatMillis } = stream.first ?? {}
    if (typeof campaign !== "string" || typeof heartbeatMillis !== "number") {
      throw new Unreachable("the agent does not name the campaign")
    }
    this.path = `${this.elections}/campaigns/${campaign}`
    this.interval = heartbeatMillis
    for (let told = true; told !== this.eligible;) {
      told = this.eligible
      await this.tellEligible(this.path)
    }
    if (this.stopping) throw new Unreachable("the campaign was stopped")
    this.stream = stream
  }

  /** Sends heartbeats until an answer shows that this program leads. Returns 0 to try again. */
  private async elected(): Promise<number> {
    try {
      while (!this.stopping) {
        const { token, finish } = await this.heartbeat()
        if (token > this.lastEnded && !finish) return token
        if (token) await this.report(token) // no work of this token goes on
        await this.stream?.wait(this.interval / 3)
      }
    } catch (e) {
      if (!(e instanceof Over || e instanceof Unreachable)) throw e
      await this.beginAgain()
    }
    return 0
  }

  /**
   * Begins another campaign, after a pause. The caller tries again if the agent is away, shuts down
   * (503), has ended the new campaign, or has not noticed yet that the last one has lost its stream
   * (409).
   */
  private async beginAgain(): Promise<void> {
    this.stream?.close()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    if (this.stopping) return
    try {
      await this.begin()
    } catch (e) {
      if (this.stopping || e instanceof Unreachable || e instanceof Over) return
      if (!(e instanceof AgentError && (e.status === 409 || e.status === 503))) throw e
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
    const number = ++this.number
    const standing = await this.connection.ask("POST", `${this.path}/heartbeat`, { number })
    const { token, finish, remainingMillis } = standing
    if (typeof remainingMillis !== "number") {
      throw new Unreachable("the agent's answer has no remainingMillis")
    }
    return { token: Number(token ?? 0), finish: finish === true, sent, remainingMillis }
  }

  /** @internal Reports that the work of a term has ended. */
  async report(token: number): Promise<void> {
    this.lastEnded = Math.max(this.lastEnded, token)
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
    /** The fencing token: higher in every later term of the election. */
    readonly token: number,
  ) {}

  /**
   * Returns whether this program may act now, for needsMillis. It sends a heartbeat each time. Act
   * at once, and ask again before the next act. False means to stop: the term is lost, the agent
   * does not answer, too little time is left, or the program must finish.
   */
  async mayAct(needsMillis = 0): Promise<boolean> {
    if (!this.open || this.campaign.stopping) return false
    try {
      const grant = await this.campaign.heartbeat()
      if (grant.token !== this.token) this.open = false
      if (!this.open || this.campaign.stopping || grant.finish) return false
      return grant.remainingMillis - since(grant.sent) > needsMillis
    } catch (e) {
      if (!(e instanceof Over || e instanceof Unreachable)) throw e
      this.open = false
      return false
    }
  }

  /** Reports that the work has ended, which releases the lease. The loop over terms calls it. */
  finished(): Promise<void> {
    this.open = false
    return (this.reported ??= this.campaign.report(this.token))
  }
}
