// Does the same as agent_worker.py, with the client for Node.
import { appendFileSync } from "node:fs"
import { pathToFileURL } from "node:url"

const [client, socket, name, journal, mode] = process.argv.slice(2)
const { Agent } = await import(pathToFileURL(`${client}/dist/index.js`))
const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

const settings = { id: name, leaseMillis: 2000, heartbeatMillis: 600 }
const campaign = await new Agent("unix:" + socket).campaign("billing", settings)
console.log("up")
for await (const term of campaign.terms()) {
  console.log("leads", term.token)
  for (let asked = false; ; asked = true) {
    const before = Number(process.hrtime.bigint()) / 1e9
    if (!(mode === "cached" && asked) && !(await term.mayAct())) break
    appendFileSync(journal, `${before} ${term.token}\n`)
    if (mode === "hangs") for (;;);
    if (mode === "waits") await new Promise(() => {})
    await sleep(5)
  }
  console.log("ended", term.token)
}
