// Does one step a second while it leads. Usage: worker.js [ADDRESS]
import { setTimeout as sleep } from "node:timers/promises"
import { Agent } from "tenure-agent"

const campaign = await new Agent(process.argv[2]).campaign("billing")
process.once("SIGTERM", () => campaign.stop())
try {
  for await (const term of campaign.terms()) {
    console.log("leads", term.token)
    while (await term.mayAct(1000)) await sleep(1000) // a step, with the token
    console.log("has stopped")
  }
} finally {
  await campaign.leave()
}
