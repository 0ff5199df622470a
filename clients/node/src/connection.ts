import * as http from "node:http"

/** The settings of a connection. */
export interface Options {
  /** The token of the agent's --listen-token-file. */
  token?: string
  /** How long the agent may take to answer: 2,000 ms by default. */
  timeoutMillis?: number
}

export type Fields = Record<string, unknown>

/** The agent refused a request. The message says why, and what to do. */
export class AgentError extends Error {
  readonly title: string
  readonly detail: string
  readonly remedy: string
  /** The fields at fault. */
  readonly errors: string[]

  constructor(readonly status: number, problem: Fields) {
    const text = (name: string) => (typeof problem[name] === "string" ? problem[name] : "")
    const parts = [text("title"), text("detail"), text("remedy")]
    super(parts.filter(Boolean).join(": ") || `status ${status}`)
    this.name = "AgentError"
    ;[this.title, this.detail, this.remedy] = parts as [string, string, string]
    this.errors = Array.isArray(problem.errors) ? problem.errors.map(String) : []
  }
}

/** The campaign is over: a heartbeat was missing, or the stream of events has ended. */
export class Over extends Error {
  override name = "Over"
}

/** The agent does not answer. */
export class Unreachable extends Error {
  override name = "Unreachable"
}

/** Sends requests to an agent. */
export class Connection {
  readonly timeout: number
  private readonly target: http.RequestOptions
  // The agent closes an idle connection after one minute. The client must close it earlier.
  private readonly idle = new http.Agent({ keepAlive: true, timeout: 20_000 })

  constructor(address: string, options: Options) {
    this.timeout = options.timeoutMillis ?? 2000
    this.target = { headers: options.token ? { Authorization: `Bearer ${options.token}` } : {} }
    if (address.startsWith("unix:")) {
      this.target.socketPath = address.slice("unix:".length)
      return
    }
    const url = new URL(address.includes("://") ? address : `http://${address}`)
    this.target.host = url.hostname.replace(/^\[(.*)\]$/, "$1")
    this.target.port = url.port
  }

  /** Sends a request, and returns the fields of the answer. */
  async ask(method: string, path: string, body?: Fields): Promise<Fields> {
    const response = await this.send(method, path, body, this.idle)
    return accept(response, await text(response))
  }

  /** Sends a request, and returns its answer, a stream, when the headers have arrived. */
  async open(method: string, path: string, body: object): Promise<http.IncomingMessage> {
    const response = await this.send(method, path, body, false)
    if (response.statusCode !== 200) accept(response, await text(response))
    return response
  }

  private send(
    method: string,
    path: string,
    body: object | undefined,
    agent: http.Agent | false,
  ): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = http.request({ ...this.target, method, path, agent })
      const cancel = () => request.destroy(new Error(`no answer within ${this.timeout} ms`))
      const late = setTimeout(cancel, this.timeout)
      request.on("error", (e) => {
        clearTimeout(late)
        reject(new Unreachable(`the agent does not answer: ${e.message}`, { cause: e }))
      })
      request.on("response", (response) => {
        if (agent === false) clearTimeout(late) // a stream has no end
        else response.on("close", () => clearTimeout(late))
        resolve(response)
      })
      request.end(body && JSON.stringify(body))
    })
  }
}

async function text(response: http.IncomingMessage): Promise<string> {
  try {
    let all = ""
    for await (const part of response.setEncoding("utf8")) all += part
    return all
  } catch (e) {
    throw new Unreachable("the answer of the agent is incomplete", { cause: e })
  }
}

function accept(response: http.IncomingMessage, body: string): Fields {
  const status = response.statusCode ?? 0
  const fields = body ? parse(body) : {}
  if (status === 410) throw new Over(String(fields.detail ?? ""))
  if (status >= 300) throw new AgentError(status, fields)
  return fields
}

function parse(body: string): Fields {
  try {
    const value: unknown = JSON.parse(body)
    if (typeof value === "object" && value !== null) return value as Fields
  } catch {
    // a proxy may answer with plain text
  }
  return { detail: body }
}

/**
 * The stream of events of a campaign. The first event names the campaign. A later one may be old,
 * so it grants no time: it only ends a wait.
 */
export class Stream {
  first?: Fields
  ended = false
  private buffer = ""
  private news = false
  private wake = (): void => {}

  constructor(private readonly response: http.IncomingMessage) {
    response.setEncoding("utf8").on("data", (part: string) => {
      const lines = (this.buffer + part).split("\n")
      this.buffer = lines.pop() ?? ""
      const data = lines.filter((line) => line.startsWith("data: "))
      if (data[0] === undefined) return
      this.first ??= parse(data[0].slice("data: ".length))
      this.interrupt()
    })
    response.on("error", () => {}) // close follows
    response.on("close", () => {
      this.ended = true
      this.interrupt()
    })
  }

  /** Waits for an event since the last wait, for interrupt or for the end: for at most millis. */
  async wait(millis: number): Promise<void> {
    if (!this.news && !this.ended) {
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, millis)
        this.wake = () => {
          clearTimeout(late)
          resolve()
        }
      })
    }
    this.news = false
  }

  interrupt(): void {
    this.news = true
    this.wake()
  }

  close(): void {
    this.response.destroy()
    this.ended = true
    this.interrupt()
  }
}
