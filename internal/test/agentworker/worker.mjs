// Does the same as worker_asyncio.py, with the client for Node.
import { appendFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

let [client, address, name, journal, lease, mode] = process.argv.slice(2)
const { Agent, AgentError, Over } = await import(pathToFileURL(`${client}/dist/src/index.js`))
const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

const leaseMillis = mode === "misuses" ? 1 : Number(lease)
const settings = { id: name, leaseMillis, heartbeatMillis: Math.floor(lease / 2) }
const agent = new Agent(address, { timeoutMillis: 60000 })
const campaign = await agent.campaign("billing", settings)
const act = Buffer.alloc(32)
act.writeUInt32LE(Number(name.slice(1)), 16)
act.writeUInt32LE(2, 20)
act.writeUInt32LE(process.pid, 24)
act.writeUInt32LE(process.pid, 28)
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
    } else if (mode === "quits") {
      const leaving = campaign.leave()
      console.log("may act:", await term.mayAct())
      await leaving
    }
  } catch (e) {
    if (!(e instanceof AgentError || e instanceof Over)) throw e // a busy machine has lost the term
  }
  for (let asked = false; ; asked = true) {
    act.writeBigInt64LE(process.hrtime.bigint(), 0)
    if (!(mode === "cached" && asked) && !(await term.mayAct())) break
    act.writeBigUInt64LE(BigInt(term.token), 8)
    appendFileSync(journal, act)
    if (mode === "hangs") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    if (mode === "waits") await sleep(1e9)
    await sleep(5)
  }
  console.log("ended", term.token)
}
