// Does the same as agent_worker_asyncio.py, with the client for Node.
import { appendFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

let [client, socket, name, journal, mode] = process.argv.slice(2)
const { Agent, AgentError, Over } = await import(pathToFileURL(`${client}/dist/src/index.js`))
const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

const settings = { id: name, leaseMillis: mode === "misuses" ? 1 : 3000, heartbeatMillis: 1500 }
const agent = new Agent("unix:" + socket, { timeoutMillis: 60000 })
const campaign = await agent.campaign("billing", settings)
console.log("up")
for await (const term of campaign.terms()) {
  console.log("leads", term.token)
  try {
    if (mode === "leaves") {
      await campaign.handOver()
      mode = "declines"
    } else if (mode === "declines") {
      await campaign.setEligible(false)
      console.log("declines")
    }
  } catch (e) {
    if (!(e instanceof AgentError || e instanceof Over)) throw e // a busy machine has lost the term
  }
  for (;;) {
    const before = Number(process.hrtime.bigint()) / 1e9
    if (!(await term.mayAct())) break
    appendFileSync(journal, `${before} ${term.token}\n`)
    if (mode === "hangs") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    if (mode === "waits") await sleep(1e9)
    await sleep(5)
  }
  console.log("ended", term.token)
}
